"""The gate's offset: one batch, complete in itself, in integers, strings and booleans.

Spark writes the offset to its write-ahead log before the batch runs and hands the same dict back
after a crash. Whatever a replay or an audit needs is therefore in here: the stretches, the rule,
the running totals and the prices learned so far.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate import stored
from spillway.gate.masks import parse_shares, text_of
from spillway.gate.rules import POLICIES, Rule, Stretch, kept_tuples
from spillway.gate.sampling import PPM
from spillway.gate.shedders.catalog import decode_selection, encode_selection
from spillway.handover import Owned
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
class Gap:
    """The last tuples that were consumed unread, cut or lost: when they arrived (epoch us).

    No tuple speaks for them. Both ends are outer bounds; 0 is as long ago as can be.
    """

    from_us: int
    until_us: int


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
    gap: Gap | None = None  # of this batch if it has unread tuples, else of the last that had
    heartbeat: bool = False
    instances: int = 0  # version of the template's instances that this batch sees
    pinned: Mapping[str, str] = field(default_factory=dict)  # options that the first start fixed
    # How far each partition has ever been offered: what is pending lies between its stop and here.
    # Empty in offsets of 0.1.0.
    ends: Mapping[int, int] = field(default_factory=dict)
    owned: Owned | None = None  # None: all windows

    @property
    def offered_tuples(self) -> int:
        """What this batch consumes, kept or not."""
        return sum(stretch.tuples for stretch in self.stretches)

    @property
    def scanned_tuples(self) -> int:
        return sum(stretch.scanned_tuples for stretch in self.stretches)

    @property
    def unread_tuples(self) -> int:
        """Cut by the gate, or lost by the log before it could be read."""
        return self.offered_tuples - self.scanned_tuples

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
            str(s.partition): _encode_stretch(s, offset.ends.get(s.partition))
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
    if offset.gap is not None:
        value["gap"] = asdict(offset.gap)
    if offset.owned is not None:
        value["owned"] = asdict(offset.owned)
    return value


def _encode_stretch(stretch: Stretch, end: int | None) -> dict[str, int]:
    value = {"from": stretch.start, "read": stretch.read, "to": stretch.stop}
    return value if end is None else {**value, "end": end}


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


def digest(offset: Offset) -> int:
    """64 bits that are the same for the same offset, however it was written down."""
    text = json.dumps(encode(offset), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def is_sentinel(value: Mapping[str, Any]) -> bool:
    return value.get("seq") == -1


def decode(value: Mapping[str, Any]) -> Offset:
    """The offset in a dict that `encode` made; anything else is refused by name."""
    if not isinstance(value, Mapping):
        raise SpillwayError("offset is damaged: it is no table of values; restore the checkpoint")
    if type(value.get("v")) is not int or value["v"] != VERSION:
        raise SpillwayError(
            f"offset has format version {value.get('v')!r:.40}: this release reads version"
            f" {VERSION}; use the release that wrote the checkpoint, or a new checkpoint"
        )
    try:
        return _decode(value)
    except (KeyError, TypeError, ValueError) as error:
        raise SpillwayError(f"offset is damaged: {error!r}; restore the checkpoint") from error


def _decode(value: Mapping[str, Any]) -> Offset:
    arrived, gap, owned = (value.get(name) for name in ("arrived", "gap", "owned"))
    partitions = {
        stored.partition(name): stored.table(part, "partition")
        for name, part in stored.table(value["partitions"], "partitions").items()
    }
    pinned = stored.table(value["pinned"], "pinned")
    totals = stored.flat(Totals, value["total"], "total")
    if min(totals.offered, totals.admitted, totals.shed, totals.lost) < 0:
        raise ValueError(f"a total is negative: {totals}")
    return Offset(
        gate=stored.text(value["gate"], "gate"),
        began_us=stored.count(value["began_us"], "began_us"),
        seq=stored.count(value["seq"], "seq"),
        planned_us=stored.count(value["planned_us"], "planned_us"),
        stretches=tuple(_decode_stretch(*item) for item in partitions.items()),
        rule=_decode_rule(value["rule"]),
        totals=totals,
        prices=_decode_prices(value.get("learned")),
        arrived=None if arrived is None else stored.flat(Arrived, arrived, "arrived"),
        gap=None if gap is None else stored.flat(Gap, gap, "gap"),
        owned=None if owned is None else stored.flat(Owned, owned, "owned"),
        heartbeat=stored.flag(value["heartbeat"], "heartbeat"),
        instances=stored.count(value.get("instances", 0), "instances"),
        pinned={stored.text(k, "pinned"): stored.text(v, k) for k, v in pinned.items()},
        ends={
            p: stored.count(part["end"], "end") for p, part in partitions.items() if "end" in part
        },
    )


def _decode_stretch(partition: int, part: Mapping[str, Any]) -> Stretch:
    start, read, stop = (stored.count(part[name], name) for name in ("from", "read", "to"))
    return Stretch(partition=partition, start=start, read=read, stop=stop)


def _decode_rule(value: Any) -> Rule:
    rule = dict(stored.table(value, "rule"))
    if "selection" in rule:
        rule["selection"] = decode_selection(stored.table(rule["selection"], "selection"))
    if "shares" in rule:
        rule["shares"] = parse_shares(stored.text(rule["shares"], "shares"))
    if rule["policy"] not in POLICIES:
        raise ValueError("unknown policy")
    for name in ("keep_ppm", "would_keep_ppm"):
        stored.whole(rule.get(name, 0), name, least=0, below=PPM + 1)
    return stored.flat(Rule, rule, "rule")


def _decode_prices(value: Any) -> Prices | None:
    if value is None:
        return None
    learned = stored.table(value, "learned")
    fixed, kept, scanned = (stored.whole(learned[n], n) for n in ("o_ps", "c_ps", "s_ps"))
    return Prices(fixed_s=fixed / _PICO, kept_s=kept / _PICO, scanned_s=scanned / _PICO)
