"""Every log by name. A log's module is imported only when it is asked for.

The same string options make the same log anywhere: on the driver, in every worker, and again
after a restart. What would differ from one making to the next (the moment a generated stream
starts) is fixed once by `pinned`; keep the pinned options wherever a restart finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError, unknown_name

if TYPE_CHECKING:
    import pyarrow as pa

    from spillway.ports import Log

# Each module has `open_log(options, schema)` and OPTIONS: option name -> meaning, unit, default.
MODULES: Mapping[str, str] = {
    "synthetic": "spillway.logs.synthetic",
    "nexmark": "spillway.logs.nexmark",
    "replay": "spillway.logs.replay",
    "kafka": "spillway.logs.kafka",
    "files": "spillway.logs.files",
}
STARTED = ("synthetic", "nexmark", "replay")  # arrivals count from a start time, by the clock


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> Log:
    """The log that option `source` names. Opens no file and no connection.

    `schema` is what the user asked for; None takes the log's own columns. Whether the two agree
    is checked by `columns()`, which raises SpillwayError with the column's name.
    """
    log: Log = _module(source_of(options)).open_log(options, schema)
    return log


def pinned(options: Mapping[str, str], now_s: float) -> dict[str, str]:
    """The options with everything fixed that a later making of the log must find unchanged."""
    fixed = dict(options)
    if source_of(options) in STARTED:
        fixed.setdefault("start", repr(float(now_s)))
    return fixed


def options_of(source: str) -> Mapping[str, str]:
    """The options of a log and what they mean, apart from names that begin with `kafka.`."""
    if source not in MODULES:
        raise unknown_name("log", source, MODULES)
    known: Mapping[str, str] = _module(source).OPTIONS
    return known


def _module(source: str) -> Any:
    try:
        return import_module(MODULES[source])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spillway"):
            raise
        raise SpillwayError(
            f"log '{source}' needs the package of module '{error.name}', which is not installed:"
            f" pip install 'spillway-spark[{source}]'"
        ) from None


def source_of(options: Mapping[str, str]) -> str:
    source = options.get("source")
    if source is None:
        raise SpillwayError(
            f"option 'source' is missing: it names the log, one of {', '.join(sorted(MODULES))}"
        )
    if source not in MODULES:
        raise unknown_name("log", source, MODULES)
    return source
