"""The gate's offset: one batch, complete in itself, in integers, strings and booleans.

Spark writes the offset to its write-ahead log before the batch runs and hands the same dict back
after a crash. Whatever a replay or an audit needs is therefore in here: the stretches, the rule,
the running totals and the prices learned so far.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.masks import parse_shares, text_of
from spillway.gate.rules import POLICIES, Rule, Stretch, kept_tuples
from spillway.gate.shedders.catalog import decode_selection, encode_selection
from spillway.model import Prices

VERSION = 1
SENTINEL: dict[str, Any] = {"v": VERSION, "seq": -1}  # where a query is before its batch 0
_PICO = 1e12


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Since the query's first start, up to and with this batch.

    `lost` is the part of `shed` that the log dropped before the gate could read it. Pending is
    what had been offered when the batch was planned and is in no batch yet.
    """

    offered: int = 0
    admitted: int = 0
    shed: int = 0
    lost: int = 0

    @property
    def pending(self) -> int:
        return self.offered - self.admitted - self.shed


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrived:
    """When the batch's kept tuples arrived (epoch microseconds).

    A p95 age belongs to the arrival that 5 % of the tuples precede.
    """

    mean_us: int
    p05_us: int
    p01_us: int
    first_us: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Offset:
    """The end of one batch. `seq` counts this gate's batches; batch 0 is the empty start."""

    gate: str
    began_us: int  # when batch 0 was planned: tells two lives of a gate's name apart
    seq: int
    planned_us: int
    stretches: tuple[Stretch, ...]
    rule: Rule = field(default_factory=Rule)
    totals: Totals = field(default_factory=Totals)
    prices: Prices | None = None
    arrived: Arrived | None = None
    heartbeat: bool = False
    instances: int = 0  # version of the template's instances that this batch sees
    pinned: Mapping[str, str] = field(default_factory=dict)  # options that the first start fixed

    @property
    def offered_tuples(self) -> int:
        """What this batch consumes, kept or not."""
        return sum(stretch.tuples for stretch in self.stretches)

    @property
    def scanned_tuples(self) -> int:
        return sum(stretch.scanned_tuples for stretch in self.stretches)

    def kept_tuples(self) -> int:
        return kept_tuples(self.stretches, self.rule)

    def at_rest(self) -> tuple[Stretch, ...]:
        """Empty stretches where this batch ends: the next one starts from them."""
        return tuple(replace(s, start=s.stop, read=s.stop) for s in self.stretches)


def encode(offset: Offset) -> dict[str, Any]:
    value: dict[str, Any] = {
        "v": VERSION,
        "gate": offset.gate,
        "began_us": offset.began_us,
        "seq": offset.seq,
        "planned_us": offset.planned_us,
        "partitions": {
            str(s.partition): {"from": s.start, "read": s.read, "to": s.stop}
            for s in offset.stretches
        },
        "rule": _encode_rule(offset.rule),
        "total": asdict(offset.totals),
        "heartbeat": offset.heartbeat,
        "instances": offset.instances,
        "pinned": dict(offset.pinned),
    }
    if offset.prices is not None:
        value["learned"] = {
            "o_ps": round(offset.prices.fixed_s * _PICO),
            "c_ps": round(offset.prices.kept_s * _PICO),
            "s_ps": round(offset.prices.scanned_s * _PICO),
        }
    if offset.arrived is not None:
        value["arrived"] = asdict(offset.arrived)
    return value


def _encode_rule(rule: Rule) -> dict[str, Any]:
    value: dict[str, Any] = {
        "keep_ppm": rule.keep_ppm,
        "seed": rule.seed,
        "policy": rule.policy,
        "reason": rule.reason,
        "would_keep_ppm": rule.would_keep_ppm,
    }
    if rule.selection is not None:
        value["selection"] = encode_selection(rule.selection)
    if rule.shares:
        value["shares"] = text_of(rule.shares)
    return value


def is_sentinel(value: Mapping[str, Any]) -> bool:
    return value.get("seq") == -1


def decode(value: Mapping[str, Any]) -> Offset:
    """The offset in a dict that `encode` made; anything else is refused by name."""
    if value.get("v") != VERSION:
        raise SpillwayError(
            f"offset has format version {value.get('v')!r}: this release reads version {VERSION};"
            " use the release that wrote the checkpoint, or a new checkpoint"
        )
    try:
        return _decode(value)
    except (KeyError, TypeError, ValueError) as error:
        raise SpillwayError(f"offset is damaged: {error!r}; restore the checkpoint") from error


def _decode(value: Mapping[str, Any]) -> Offset:
    rule, learned, arrived = dict(value["rule"]), value.get("learned"), value.get("arrived")
    if "selection" in rule:
        rule["selection"] = decode_selection(rule["selection"])
    if "shares" in rule:
        rule["shares"] = parse_shares(rule["shares"])
    if rule["policy"] not in POLICIES:
        raise ValueError(f"unknown policy {rule['policy']}")
    stretches = tuple(
        Stretch(partition=int(name), start=part["from"], read=part["read"], stop=part["to"])
        for name, part in value["partitions"].items()
    )
    return Offset(
        gate=value["gate"],
        began_us=value["began_us"],
        seq=value["seq"],
        planned_us=value["planned_us"],
        stretches=stretches,
        rule=Rule(**rule),
        totals=Totals(**value["total"]),
        prices=None
        if learned is None
        else Prices(
            fixed_s=learned["o_ps"] / _PICO,
            kept_s=learned["c_ps"] / _PICO,
            scanned_s=learned["s_ps"] / _PICO,
        ),
        arrived=None if arrived is None else Arrived(**arrived),
        heartbeat=value["heartbeat"],
        instances=value.get("instances", 0),
        pinned=dict(value["pinned"]),
    )
