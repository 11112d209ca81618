"""A node's part in moves of queries without state: rows are cut where they stand in their streams.

Both sides are bound by the same positions: an origin's batches do not go beyond, and a successor's
stay silent before. What counts is what stands in the checkpoints, so all of it holds over restarts.
"""

from spillway.handover import ALL, NOTHING_YET, Positions, furthest, has_passed
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.messages import Reached, Successor
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.files import Folder, LoggedBatch, last_batch


class RowHanding:
    def __init__(self, dispatcher: Dispatcher, folder: Folder) -> None:
        self._dispatcher, self._folder = dispatcher, folder
        self._until: dict[str, Positions] = {}  # origins that have been cut
        self._took: set[str] = set()  # successors whose rows are their own

    def forget(self, run: str) -> None:
        self._until.pop(run, None)
        self._took.discard(run)

    def caught_up(self, run: str) -> Reached | None:
        """Where a successor stands; None: not yet."""
        stands = self._at_rest(run)
        return None if stands is None else Reached(read_at=stands)

    def hand_over(self, run: str, duty: Duty, move: Successor) -> Reached | None:
        """Choose where the origin ends, between two batches, and let it go on up to there."""
        if run not in self._until:
            if duty.from_at is not None and not self.take(run, duty.from_at):
                return None  # its own rows have not begun
            self._dispatcher.hold(run)
            if (stands := self._at_rest(run)) is None:
                return None
            self._until[run] = furthest(stands, move.read_at or {})
            self._dispatcher.bound(run, self._until[run])
            self._dispatcher.let_go(run)
        until, done = self._until[run], self._last(run, completed=True)
        return Reached(until_at=until, finished=done is not None and has_passed(done, until))

    def take(self, run: str, from_at: Positions) -> bool:
        """Whether a batch of a successor's own rows is out: silent up to there, to the tuple, then
        not."""
        if run in self._took:
            return True
        planned = last_batch(self._folder.checkpoint(run), completed=False)
        if planned is not None and any(o.owned != NOTHING_YET for o in planned.gates()):
            self._dispatcher.bound(run, None)
            if planned.completed:
                self._took.add(run)
        elif (done := self._last(run, completed=True)) is not None and has_passed(done, from_at):
            self._dispatcher.own(run, ALL)
            self._dispatcher.bound(run, None)
        else:
            self._dispatcher.bound(run, from_at)
        self._dispatcher.let_go(run)
        return run in self._took

    def _at_rest(self, run: str) -> Positions | None:
        """Where it stands when no batch runs, none is planned, and none can be."""
        if not self._dispatcher.stands_still(run):
            return None
        planned = last_batch(self._folder.checkpoint(run), completed=False)
        return None if planned is None or not planned.completed else _positions(planned)

    def _last(self, run: str, *, completed: bool) -> Positions | None:
        batch = last_batch(self._folder.checkpoint(run), completed=completed)
        return None if batch is None else _positions(batch)


def _positions(batch: LoggedBatch) -> Positions:
    return {
        offset.gate.rpartition("/")[2]: {s.partition: s.stop for s in offset.stretches}
        for offset in batch.gates()
    }
