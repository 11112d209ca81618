"""`spillway ledger --flow`: what shedders counted in the data is counted again, from the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spillway.clock import WallClock
from spillway.flow.flow import Flow
from spillway.flow.stream_log import log_of
from spillway.gate.ledger import MOST_NAMED
from spillway.gate.offsets import Offset
from spillway.gate.shedders.recount import difference, is_measured, still_there


@dataclass(frozen=True, kw_only=True, slots=True)
class Recount:
    """Of one gate: batches whose counts the log confirmed, and those that it has no longer."""

    checked: int
    gone: int
    problems: tuple[str, ...]


NOT_LOOKED = Recount(checked=0, gone=0, problems=())


def recount(offsets: Iterable[Offset], flow: Flow, gate: str, pinned: Mapping[str, str]) -> Recount:
    """`offsets`: the batches of one gate, one at a time. `pinned`: as the last of them has them,
    because the log's identity may have been added on the way."""
    log, now_s = log_of(flow, gate, pinned), WallClock().now_s()
    checked = gone = unnamed = 0
    problems: list[str] = []
    for offset in offsets:
        if not is_measured(offset):
            continue
        if not still_there(offset, log, now_s):
            gone += 1
            continue
        checked += 1
        problem = difference(offset, log)
        if problem is not None and len(problems) < MOST_NAMED:
            problems.append(problem)
        elif problem is not None:
            unnamed += 1
    if unnamed > 0:
        problems.append(f"{unnamed} more batches whose counts the log does not have")
    return Recount(checked=checked, gone=gone, problems=tuple(problems))
