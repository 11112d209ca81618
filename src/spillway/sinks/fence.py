"""Who may write a query's results, where another node may have taken the query over.

A lease ends what a gate plans; a process that froze may still write what it had planned before. So
a sink that can compare does: whoever has the higher epoch of a generation is the one.
"""

from dataclasses import dataclass

from spillway.errors import SpillwayError


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    owner: str  # cluster/query
    generation: int  # of the checkpoint
    epoch: int  # of the assignment that it runs by


def overtaken(fence: Fence) -> SpillwayError:
    return SpillwayError(
        f"'{fence.owner}' runs on another node by a later assignment than {fence.epoch}: this one's"
        " results are not written; nothing to do, the node stops it"
    )
