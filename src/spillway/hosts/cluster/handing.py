"""A node's part in moves of running queries: what the gates are told, and how far they have got.

What counts is what stands in an offset whose batch has ended: after a restart, here or elsewhere,
it is found there again.
"""

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from spillway.flow.flow import Query
from spillway.gate.offsets import Offset, encode
from spillway.handover import FOREVER, Owned
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.handing_rows import RowHanding
from spillway.hosts.cluster.messages import Reached, Successor, run_name
from spillway.hosts.cluster.pausing import Pauses
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.cuts import Cut, Rowwise, cut_of
from spillway.hosts.spark.driver.own_windows import Windowed
from spillway.hosts.spark.driver.progress import BatchProgress, end_offsets
from spillway.hosts.spark.driver.states import NO_TUPLES, RUNNING
from spillway.hosts.spark.files import Folder, last_batch
from spillway.model import parse_duration_s

_WARM_BATCHES = 5  # a new plan's first ones take long
_QUIET_S = 3.0  # a query without state has no heartbeats: then nothing waits
_MS_US = 1000  # Spark's event times are cut off to whole milliseconds


class Handing:
    """`ahead_s`: how much later than all that was read the cut is, so that the successor is told of
    it before its first own result is due."""

    def __init__(self, application: Application, folder: Folder, ahead_s: float) -> None:
        self._application, self._folder = application, folder
        self._ahead_us = round(ahead_s * 1e6)
        self.reached: dict[str, Reached] = {}  # by run
        self._rows = RowHanding(application.dispatcher, folder)
        self._pauses = Pauses()
        self._cuts: dict[str, Cut] = {}  # of runs that move
        self._origins: dict[str, int] = {}  # run -> generation before it, as long as it is silent
        self._rests: set[str] = set()  # successors that have caught up
        self._quiet_since_s: dict[str, float] = {}  # successors that no tuple comes to
        self._follows: dict[str, Mapping[str, str]] = {}  # run -> stream -> offset
        application.gates.follows = lambda run, stream: self._follows.get(run, {}).get(stream)

    def may_start(self, run: str, duty: Duty) -> bool:
        """A successor needs an origin that has a place to go on from. Either side may have to stand
        still, or not to go beyond the cut, from its first batch on."""
        if duty.follows is None:
            self._pauses.begins(run, self._checkpoint(duty))
            self._look(run, duty)
            return True
        batch = last_batch(self._checkpoint(duty, duty.follows), completed=True)
        if batch is None:
            return False
        offsets = {o.gate.rpartition("/")[2]: json.dumps(encode(o)) for o in batch.gates()}
        self._follows[run] = offsets
        self._origins[run] = duty.follows
        self._look(run, duty)
        return bool(offsets)

    def look(self, duties: Mapping[str, Duty], running: Collection[str]) -> bool:
        """Again and again; whether there is something to report."""
        before = self.said()
        for run in running:
            if run in duties:
                self._look(run, duties[run])
                self._pauses.look(run, self._checkpoint(duties[run]))
        return self.said() != before

    def said(self) -> dict[str, Reached]:
        """For the leader."""
        paused_s = self._pauses.known_s
        return {
            run: replace(self.reached.get(run, Reached()), pause_s=paused_s.get(run))
            for run in {*self.reached, *paused_s}
        }

    def _checkpoint(self, duty: Duty, generation: int | None = None) -> Path:
        return self._folder.checkpoint(run_name(duty.name, generation or duty.generation))

    def _look(self, run: str, duty: Duty) -> None:
        move, dispatcher = duty.move, self._application.dispatcher
        if move is not None and move.state != "follows" and duty.follows is None:
            if isinstance(self._cut(run, duty), Rowwise):
                self._reach(run, self._rows.hand_over(run, duty, move))
            else:
                self._hand_over(run, duty, move)
        elif duty.from_at is not None:  # also after the move: it may hear of its end first
            if self._rows.take(run, duty.from_at) and run in self._origins:
                origin = self._checkpoint(duty, self._origins.pop(run))
                self._pauses.between(run, origin, self._checkpoint(duty))
            self.reached.pop(run, None)
        elif duty.from_us is not None:
            dispatcher.own(run, Owned(from_us=duty.from_us))
            dispatcher.let_go(run)
            self.reached.pop(run, None)
        elif move is not None and duty.follows is not None:
            self._catch_up(run, duty, move)
        else:
            self.reached.pop(run, None)

    def forget(self, run: str) -> None:
        """It runs here no more."""
        self.reached.pop(run, None)
        self._cuts.pop(run, None)
        self._origins.pop(run, None)
        self._rests.discard(run)
        self._quiet_since_s.pop(run, None)
        self._pauses.forget(run)
        self._rows.forget(run)

    def _reach(self, run: str, reached: Reached | None) -> None:
        if reached is not None:
            self.reached[run] = reached

    def _cut(self, run: str, duty: Duty) -> Cut:
        if run not in self._cuts:
            query = Query.model_validate(dict(duty.query))
            self._cuts[run] = cut_of(duty.name, query, self._application.flow)
        return self._cuts[run]

    def _catch_up(self, run: str, duty: Duty, move: Successor) -> None:
        if move.state == "cuts":
            self._application.dispatcher.hold(run)
        elif run in self._rests or self._has_caught_up(run, self._cut(run, duty)):
            self._rests.add(run)  # what comes from now on does not count
            self._application.dispatcher.hold(run)
            if run not in self.reached:
                self._reach(run, self._stands(run, duty))

    def _stands(self, run: str, duty: Duty) -> Reached | None:
        """How far a successor has read, when it stands still."""
        if isinstance(self._cut(run, duty), Rowwise):
            return self._rows.caught_up(run)
        at = self._at_rest(run)
        return None if at is None else Reached(read_us=self._read_us(run, at))

    def _hand_over(self, run: str, duty: Duty, move: Successor) -> None:
        """Choose the cut between two batches; it stands when the next one has ended with it."""
        dispatcher, at = self._application.dispatcher, self._application.progress.get(run)
        if at is None:
            return
        offset = _offset(at)
        if offset.owned is not None and offset.owned.until_us < FOREVER:
            self.reached[run] = self._handed_over(run, duty, at, offset.owned.until_us)
            dispatcher.let_go(run)
            return
        dispatcher.hold(run)
        if (settled := self._at_rest(run)) is not None:
            from_us = duty.from_us or 0
            read_us = max(self._read_us(run, settled), move.read_us, from_us)
            own = Owned(from_us=from_us, until_us=read_us + _MS_US + self._ahead_us)
            dispatcher.own(run, own)
            dispatcher.let_go(run)

    def _handed_over(self, run: str, duty: Duty, at: BatchProgress, until_us: int) -> Reached:
        cut = self._cut(run, duty)
        assert isinstance(cut, Windowed)
        ends_us = until_us + cut.window.length_us  # of the last window that is its own, or later
        done = at.watermark_us is not None and at.watermark_us >= ends_us
        before = self.reached.get(run, Reached())
        return Reached(until_us=until_us, finished=done or before.finished)

    def _has_caught_up(self, run: str, cut: Cut) -> bool:
        """Its batches hold the target, or take all that came during the one before them."""
        application = self._application
        batches = application.delivered(run)
        state, at = application.states.of(run), application.progress.get(run)
        if state != NO_TUPLES:
            self._quiet_since_s.pop(run, None)
        elif at is not None and isinstance(cut, Windowed):  # of a quiet stream: its heartbeats
            return _offset(at).heartbeat
        else:
            since_s = self._quiet_since_s.setdefault(run, time.monotonic())
            return time.monotonic() - since_s > _QUIET_S
        if state != RUNNING or len(batches) < _WARM_BATCHES:
            return False
        target = application.target(application.flow.queries[run].class_name)
        last = batches[-1]
        return last.mean_delay_s <= max(target.delay_s, 2.0 * last.duration_s)

    def _at_rest(self, run: str) -> BatchProgress | None:
        """Its last batch, when that has ended and no other one is planned."""
        at = self._application.progress.get(run)
        if at is None or not self._application.dispatcher.stands_still(run):
            return None
        last = last_batch(self._folder.checkpoint(run), completed=False)
        if last is None or not last.completed:
            return None
        return at if [o.seq for o in last.gates()] == [_offset(at).seq] else None

    def _read_us(self, run: str, at: BatchProgress) -> int:
        """No row that it has read has a later event time."""
        [stream] = self._application.streams_of(run)
        delay_us = round(parse_duration_s(self._application.flow.streams[stream].watermark) * 1e6)
        return max(at.newest_us or 0, (at.watermark_us or 0) + delay_us) + _MS_US


def _offset(at: BatchProgress) -> Offset:
    [offset] = end_offsets(at)
    return offset
