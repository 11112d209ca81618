"""What a reader may compute of a windowed aggregate before Spark sees a row.

A pane is a stretch of event time whose tuples lie in the same windows, all of them: late for one
means late for every tuple of the pane. So the tuples of a batch that share pane and keys can be one
row, with the latest of their event times: Spark puts it into the same windows, and the watermark
moves as far as it did.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Function = Literal["count", "sum", "total", "weighted", "min", "max"]
WEIGHT = "_weight"
MATCHES = "_matches"  # whether the tuples of a partial row meet the conditions


@dataclass(frozen=True, kw_only=True, slots=True)
class Partial:
    """One column of a partial row. A count of None is of tuples; `total` is a sum as a double,
    `weighted` one of values times their weights."""

    name: str
    function: Function
    column: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A comparison of a column with a constant, as WHERE has it."""

    column: str
    operator: Literal["=", "<>", "<", "<=", ">", ">=", "is null", "is not null"]
    value: int | float | str | bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """Panes [start + n pane, start + (n + 1) pane), counted from 1970."""

    time: str  # the column of event times
    pane_us: int
    start_us: int
    keys: tuple[str, ...]
    partials: tuple[Partial, ...]
    conditions: tuple[Condition, ...] = ()  # a tuple has to meet all of them
    rows: str  # what tuples look like: Spark's schema as JSON

    def text(self) -> str:
        """As it travels in an option."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> "Combination":
        value: dict[str, Any] = json.loads(text)
        made = {
            "keys": tuple(value["keys"]),
            "partials": tuple(Partial(**partial) for partial in value["partials"]),
            "conditions": tuple(Condition(**condition) for condition in value["conditions"]),
        }
        return cls(**{**value, **made})
