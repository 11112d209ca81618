"""A node's part in moves of running queries: what the gates are told, and how far they have got.

What counts is what stands in an offset whose batch has ended: after a restart, here or elsewhere,
it is found there again.
"""

import json
from collections.abc import Collection, Mapping

from spillway.gate.offsets import Offset, encode
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.messages import Reached, Successor
from spillway.hosts.cluster.node_folder import NodeFolder, checkpoint_of
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.own_windows import windowed
from spillway.hosts.spark.driver.progress import BatchProgress, end_offsets
from spillway.hosts.spark.driver.states import NO_TUPLES, RUNNING
from spillway.hosts.spark.files import last_batch
from spillway.model import FOREVER, Owned, parse_duration_s

_WARM_BATCHES = 5  # a new plan's first ones take long
_MS_US = 1000  # Spark's event times are cut off to whole milliseconds


class Handing:
    """`ahead_s`: how much later than all that was read the cut is, so that the successor is told of
    it before its first own result is due."""

    def __init__(self, application: Application, folder: NodeFolder, ahead_s: float) -> None:
        self._application, self._folder = application, folder
        self._ahead_us = round(ahead_s * 1e6)
        self.reached: dict[str, Reached] = {}  # by run
        self._lengths_us: dict[str, int] = {}  # of the windows of a run
        self._follows: dict[str, Mapping[str, str]] = {}  # run -> stream -> offset
        application.gates.follows = lambda run, stream: self._follows.get(run, {}).get(stream)

    def may_start(self, run: str, duty: Duty) -> bool:
        """A successor needs an origin that has a place to go on from."""
        if duty.follows is None:
            return True
        origin = checkpoint_of(self._folder.shared, duty.name, duty.follows)
        batch = last_batch(origin, completed=True)
        if batch is None:
            return False
        offsets = {o.gate.rpartition("/")[2]: json.dumps(encode(o)) for o in batch.gates()}
        self._follows[run] = offsets
        self._look(run, duty)  # before its first batch: it may have to stand still from the start
        return bool(offsets)

    def look(self, duties: Mapping[str, Duty], running: Collection[str]) -> bool:
        """Again and again; whether there is something to report."""
        before = dict(self.reached)
        for run in running:
            if run in duties:
                self._look(run, duties[run])
        return self.reached != before

    def _look(self, run: str, duty: Duty) -> None:
        move, dispatcher = duty.move, self._application.dispatcher
        if move is not None and move.state != "follows" and duty.follows is None:
            self._hand_over(run, duty, move)
        elif duty.from_us is not None:  # also after the move: it may hear of its end first
            dispatcher.own(run, Owned(from_us=duty.from_us))
            dispatcher.let_go(run)
            self.forget(run)
        elif move is not None and duty.follows is not None:
            self._catch_up(run, move)
        else:
            self.forget(run)

    def forget(self, run: str) -> None:
        self.reached.pop(run, None)

    def _catch_up(self, run: str, move: Successor) -> None:
        if move.state == "cuts":
            self._application.dispatcher.hold(run)
        elif run not in self.reached and self._has_caught_up(run):
            self._application.dispatcher.hold(run)
            if (at := self._at_rest(run)) is not None:
                self.reached[run] = Reached(read_us=self._read_us(run, at))

    def _hand_over(self, run: str, duty: Duty, move: Successor) -> None:
        """Choose the cut between two batches; it stands when the next one has ended with it."""
        dispatcher, at = self._application.dispatcher, self._application.progress.get(run)
        if at is None:
            return
        offset = _offset(at)
        if offset.owned is not None and offset.owned.until_us < FOREVER:
            self.reached[run] = self._handed_over(run, at, offset.owned.until_us)
            dispatcher.let_go(run)
            return
        dispatcher.hold(run)
        if (settled := self._at_rest(run)) is not None:
            from_us = duty.from_us or 0
            read_us = max(self._read_us(run, settled), move.read_us, from_us)
            own = Owned(from_us=from_us, until_us=read_us + _MS_US + self._ahead_us)
            dispatcher.own(run, own, after=_offset(settled).seq)
            dispatcher.let_go(run)

    def _handed_over(self, run: str, at: BatchProgress, until_us: int) -> Reached:
        if run not in self._lengths_us:
            flow = self._application.flow
            self._lengths_us[run] = windowed(run, flow.queries[run], flow).window.length_us
        ends_us = until_us + self._lengths_us[run]  # of the last window that is its own, or later
        done = at.watermark_us is not None and at.watermark_us >= ends_us
        before = self.reached.get(run, Reached())
        return Reached(until_us=until_us, finished=done or before.finished)

    def _has_caught_up(self, run: str) -> bool:
        """Its batches hold the target, or take all that came during the one before them."""
        application = self._application
        batches = application.delivered(run)
        state, at = application.states.of(run), application.progress.get(run)
        if state == NO_TUPLES and at is not None:  # of a quiet stream: its heartbeats
            return _offset(at).heartbeat
        if state != RUNNING or len(batches) < _WARM_BATCHES:
            return False
        target = application.target(application.flow.queries[run].class_name)
        last = batches[-1]
        return last.mean_delay_s <= max(target.delay_s, 2.0 * last.duration_s)

    def _at_rest(self, run: str) -> BatchProgress | None:
        """Its last batch, when that has ended and no other one is planned."""
        at = self._application.progress.get(run)
        if at is None or self._application.dispatcher.is_running(run):
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
