"""What a gate wrote into its offset, as anybody finds it in a query's progress."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, decode, is_sentinel
from spillway.model import Prices


@dataclass(frozen=True, kw_only=True)
class GateProgress:
    """One gate in one finished batch."""

    gate: str  # query/stream in a flow, else its option `gate`
    batch: int  # of this gate
    offered_tuples: int  # of this batch, as the next two
    kept_tuples: int
    shed_tuples: int
    reason: str
    totals: Totals  # since the query's first start
    prices: Prices | None  # what a batch takes, as learned so far
    log_ends: Mapping[int, int]  # by partition: the next position to be written, as known now
    heartbeat: bool


def gates_of(query: Any) -> tuple[GateProgress, ...]:
    found = (_of_source(source) for source in _progress(query).get("sources", ()))
    return tuple(gate for gate in found if gate is not None)


def _progress(query: Any) -> Mapping[str, Any]:
    """Of a query its last progress, of an event the progress that it holds."""
    known = getattr(query, "lastProgress", query)
    known = getattr(known, "progress", known)
    if known is None:
        return {}
    if isinstance(known, str):
        known = json.loads(known)
    elif not isinstance(known, Mapping):
        text = getattr(known, "json", None)
        if text is None:
            raise SpillwayError(
                f"progress is of a {type(query).__name__}: give a StreamingQuery, or what its"
                " listener was given"
            )
        known = json.loads(text() if callable(text) else text)
    found: Mapping[str, Any] = known
    return found


def _of_source(source: Mapping[str, Any]) -> GateProgress | None:
    end = _parsed(source.get("endOffset"))
    if not isinstance(end, dict) or "began_us" not in end or is_sentinel(end):
        return None
    offset, begin = decode(end), _parsed(source.get("startOffset"))
    is_new = not isinstance(begin, dict) or begin.get("seq") != offset.seq
    offered = offset.offered_tuples if is_new else 0
    kept = offset.kept_tuples() if is_new else 0
    return GateProgress(
        gate=offset.gate,
        batch=offset.seq,
        offered_tuples=offered,
        kept_tuples=kept,
        shed_tuples=offered - kept,
        reason=offset.rule.reason,
        totals=offset.totals,
        prices=offset.prices,
        log_ends=_ends(source, offset),
        heartbeat=offset.heartbeat,
    )


def _ends(source: Mapping[str, Any], offset: Offset) -> Mapping[int, int]:
    latest = _parsed(source.get("latestOffset"))
    partitions = latest.get("partitions") if isinstance(latest, dict) else None
    if isinstance(partitions, dict) and all(isinstance(end, int) for end in partitions.values()):
        return {int(partition): end for partition, end in partitions.items()}
    return dict(offset.ends)


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
