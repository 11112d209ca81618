"""The gate's planner: what the next batch is. Lives in one process per query source.

Spark's order of calls: `latest(start)` plans a batch; Spark logs the offset; `completed(previous)`
arrives; `shown(start, end)` is the proof that the plan was logged; the batch runs; `latest` again.
A plan that is never shown was discarded. After a restart `shown` comes without `latest`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from spillway.clock import Clock, WallClock
from spillway.errors import SpillwayError
from spillway.gate.arrivals import Arrivals
from spillway.gate.offsets import Offset, decode, encode, is_sentinel
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Pace, Wish, bounded, dry, freshest
from spillway.gate.planning import Settings, Waiting, heartbeat, next_offset, survey
from spillway.gate.rules import Rule, seen_tuples
from spillway.hosts.spark.planner.archive import Archive
from spillway.hosts.spark.planner.batch_time import TriggerWatch, committed_s
from spillway.hosts.spark.planner.deciding import Choice, Decider
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.shedding import Shedding
from spillway.hosts.spark.planner.starts import first_stretches
from spillway.logs import catalog
from spillway.model import BatchRecord
from spillway.ports import Log, Span
from spillway.templates.instance_store import InstanceStore

_SHORTEST_NAP_S = 0.002
_SHORT_S = 30.0  # a log that ends below our position for so long will not come back
_LONGEST_NAP_S = 0.02

_IDENTITY = ("source", "topic", "path")  # what may not change under a checkpoint

Encoded = dict[str, Any]


@dataclass(kw_only=True)
class _Running:
    """A batch between its planning and its end."""

    end: Encoded
    planned_s: float  # monotonic
    looked_s: float = 0.0  # what a shedder's look at the data took before that
    shown: bool = False
    learnable: bool = True  # a replayed batch includes the restart: it teaches nothing


class Planner:
    def __init__(
        self,
        options: Mapping[str, str],
        gate: GateOptions,
        schema: Any = None,
        *,
        decider: Decider | None = None,
        clock: Clock | None = None,
        elapsed: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = dict(options)
        self._gate = gate
        self._schema = schema
        self._clock = clock or WallClock()
        self._elapsed = elapsed
        self._sleep = sleep
        self._decider = decider or Decider(gate, self._clock)
        self._triggers = TriggerWatch()
        self._joint = Joint(gate.joint, self._options) if gate.joint else None
        self._archive = Archive(Path(gate.ledger)) if gate.ledger else None
        self._instances = InstanceStore(Path(gate.instances)) if gate.instances else None
        self._settings = Settings(
            seed=gate.seed, policy=gate.policy, dry_run=gate.dry_run, shares=gate.masks
        )
        self._log: Log | None = None
        self._shedding: Shedding | None = None
        self._looked_s = 0.0
        self._pace: Pace | None = None
        self._running: _Running | None = None
        self._completed_seq: int | None = None
        self._growing = False  # the last batch was smaller than wished, not having been tried yet
        self._short_since_s: float | None = None  # the log has ended below our position
        self._frozen: tuple[Span, ...] | None = None  # extent at the start of an AvailableNow run
        self._busy_s = elapsed()  # when the last batch was planned

    def freeze(self) -> None:
        """From now on serve what is there at the first plan, all of it, and then nothing."""
        self._frozen = ()
        self._settings = replace(self._settings, shares=())

    def latest(self, start: Encoded) -> Encoded:
        """The end of the next batch, or `start` itself when there is nothing to do."""
        if is_sentinel(start):
            first = self._begin()
            if self._joint is not None:
                self._joint.enter(first)
            return encode(first)
        previous = decode(start)
        self._resume(previous)
        self._batch_ended(previous)
        self._archived(start)
        if self._joint is not None:
            self._joint.enter(previous)
        planned = self._next(previous)
        if planned is None:
            return start
        self._busy_s = self._elapsed()
        if self._instances is not None:
            planned = replace(planned, instances=self._instances.version())
        end = encode(planned)
        self._running = _Running(end=end, planned_s=self._busy_s, looked_s=self._looked_s)
        return end

    def shown(self, start: Encoded, end: Encoded) -> Offset | None:
        """The batch from start to end, which Spark has logged; None when it is empty."""
        if start == end:
            return None
        batch = decode(end)
        if not is_sentinel(start):
            self._archived(start)
        running = self._running
        if running is None or running.end != end:
            self._running = _Running(
                end=end, planned_s=self._elapsed(), shown=True, learnable=False
            )
        elif not running.shown:
            self._require_durable(start)
            running.shown = True
        return batch

    def completed(self, end: Encoded) -> None:
        if not is_sentinel(end):
            self._completed_seq = end["seq"]
            self._archived(end)
            if self._log is not None:
                self._log.commit({s.partition: s.stop for s in decode(end).stretches})

    def report(self) -> Encoded | None:
        """Where the log ends now, for the query's progress."""
        if self._log is None:
            return None
        extent = self._log.extent(self._clock.now_s())
        return {"partitions": {str(span.partition): span.stop for span in extent}}

    def _begin(self) -> Offset:
        """Batch 0: no tuples, only the place where the stream starts."""
        now_s = self._clock.now_s()
        pinned = catalog.pinned(self._options, now_s)
        extent = catalog.open_log(pinned, self._schema).extent(now_s)
        if self._frozen is not None:
            self._frozen = extent
        return Offset(
            gate=self._gate.gate or uuid4().hex[:12],
            began_us=round(now_s * 1e6),
            seq=0,
            planned_us=round(now_s * 1e6),
            stretches=first_stretches(
                self._gate.starting_offsets, extent, self._options.get("topic")
            ),
            rule=Rule(seed=self._gate.seed, policy=self._gate.policy, reason="start"),
            pinned={k: v for k, v in pinned.items() if k in _IDENTITY or self._options.get(k) != v},
        )

    def _resume(self, previous: Offset) -> None:
        if self._log is None:
            _require_same_stream(self._options, previous.pinned)
            options = {**self._options, **previous.pinned}
            self._log = catalog.open_log(options, self._schema)
            options.pop("dead_letter", None)  # a look counts nothing: the tuples may yet be shed
            if self._gate.selection is not None:
                self._shedding = Shedding(self._gate.selection, options, self._schema or self._log)
        if self._pace is None:
            gate = self._gate
            self._pace = Pace.at_start(gate.first_batch, previous.costs, gate.target)

    def _batch_ended(self, previous: Offset) -> None:
        running, self._running = self._running, None
        if running is None or not running.shown or running.end["seq"] != previous.seq:
            return
        kept, scanned = self._cost_tuples(previous), previous.scanned_tuples
        assert self._pace is not None
        self._pace = self._pace.after(kept, scanned)
        if self._joint is not None:
            beside = self._joint.beside(running.planned_s)
            kept, scanned = kept + beside[0], scanned + beside[1]
        if running.learnable and scanned > 0:
            duration_s, ended_s = self._timed(running, previous)
            record = BatchRecord(
                kept_tuples=kept, scanned_tuples=scanned, duration_s=duration_s, ended_s=ended_s
            )
            self._decider.batch_ended(previous, record)

    def _cost_tuples(self, batch: Offset) -> int:
        """What a batch kept, as the load manager counts it."""
        kept, split = batch.kept_tuples(), self._gate.split
        if split is None:
            return kept
        return split.whole_tuples(kept, seen_tuples(batch.stretches, batch.rule))

    def _timed(self, running: _Running, previous: Offset) -> tuple[float, float]:
        """(duration, end) of the batch that has just ended."""
        now_s = self._clock.now_s()
        if self._gate.trigger_s is None:
            self._triggers.asked(now_s)
            return self._elapsed() - running.planned_s + running.looked_s, now_s
        assert self._gate.checkpoint is not None
        ended_s = committed_s(Path(self._gate.checkpoint)) or now_s
        return max(1e-3, ended_s - previous.planned_us / 1e6), ended_s

    def _next(self, previous: Offset) -> Offset | None:
        """Wait for tuples, and for leave to start, at most as long as one poll."""
        deadline_s, nap_s = self._elapsed() + self._gate.poll_s, _SHORTEST_NAP_S
        while True:
            waiting = self._survey(previous)
            looked_s = self._elapsed()
            left_s = deadline_s - looked_s
            if waiting.tuples > 0:
                if self._frozen is not None:
                    return self._plan(previous, waiting)
                if self._decider.may_start(
                    previous, waiting.arrivals, max(0.0, left_s), joined=self._joined()
                ):
                    if self._elapsed() - looked_s > _SHORTEST_NAP_S:
                        waiting = self._survey(previous)  # more came while it waited
                    return self._plan(previous, waiting)
            else:
                self._decider.rest(previous, joined=self._joined())
                if self._frozen is None and self._is_quiet(previous):
                    return heartbeat(previous, self._clock.now_s())
                if self._joint is not None and self._joint.pending(self._clock.now_s()):
                    return None
            if left_s <= 0.0 or self._frozen is not None:
                return None
            self._sleep(nap_s)
            nap_s = min(_LONGEST_NAP_S, 1.5 * nap_s)

    def _joined(self) -> bool:
        """Whether another gate of the query has planned its part of this batch."""
        return self._joint is not None and self._joint.share(self._elapsed()) is not None

    def _survey(self, previous: Offset) -> Waiting:
        assert self._log is not None
        extent = self._frozen or self._log.extent(self._clock.now_s())
        if self._frozen == ():
            self._frozen = extent
        self._require_reached(previous, extent)
        waiting = survey(previous, extent, self._log.arrivals)
        if waiting.lost_tuples > 0 and self._gate.fail_on_data_loss:
            raise SpillwayError(
                f"the log dropped {waiting.lost_tuples} tuples before they were read: option"
                " 'failOnDataLoss' is true; set it to false to count them as shed and go on"
            )
        return waiting

    def _require_reached(self, previous: Offset, extent: tuple[Span, ...]) -> None:
        """A lagging replica may end below our position for a moment, a new topic does for good."""
        reached = {s.partition: s.stop for s in previous.stretches}
        short = [span for span in extent if span.stop < reached.get(span.partition, 0)]
        if not short or self._options["source"] in catalog.STARTED:
            self._short_since_s = None
            return
        if self._short_since_s is None:
            self._short_since_s = self._elapsed()
        if self._elapsed() - self._short_since_s > _SHORT_S:
            first = short[0]
            raise SpillwayError(
                f"partition {first.partition} of the log ends at {first.stop}, but this checkpoint"
                f" has read up to {reached[first.partition]}: it was cut short or made anew; start"
                " with a new checkpoint"
            )

    def _is_quiet(self, previous: Offset) -> bool:
        """An empty batch after the last one with tuples lets its watermark take effect.

        With heartbeat rows the watermark itself moves, so they go on for as long as it is quiet.
        """
        if not self._gate.heartbeat_rows and (previous.heartbeat or previous.seq == 0):
            return False
        return self._elapsed() - self._busy_s >= self._gate.quiet_s

    def _plan(self, previous: Offset, waiting: Waiting) -> Offset:
        assert self._pace is not None
        choice = self._choose(previous, waiting.arrivals)
        self._growing = self._pace.bounds(choice.wish, waiting.arrivals.tuples)
        pace = self._pace.within(self._gate.max_batch, "max_batch")
        if self._frozen is None:
            pace = pace.within(self._decider.longest_batch, "no longer than the target")
        cut = bounded(choice.wish, waiting.arrivals.tuples, pace)
        if waiting.lost_tuples > 0:
            reason = f"{cut.reason}; the log dropped {waiting.lost_tuples} tuples unread"
            cut = replace(cut, reason=reason)
        cut, settings = freshest(cut) if choice.fresh else cut, self._settings
        if settings.dry_run:
            cut = dry(cut, pace)
        if self._gate.split is not None and self._frozen is None:
            spending = self._gate.split.spend(cut.fraction)
            reason = f"{cut.reason}; {spending.reason}"
            cut = replace(cut, fraction=spending.keep_fraction, reason=reason)
            settings = replace(settings, shares=spending.shares)
        offset = next_offset(
            previous,
            waiting,
            cut,
            settings,
            now_s=self._clock.now_s(),
            costs=self._decider.costs or previous.costs,
        )
        share = choice.share
        if self._shedding is not None and not self._gate.dry_run:
            begun_s = self._elapsed()
            led = None if self._joint is None else self._joint.share(begun_s)
            offset = self._shedding.selected(offset, previous, led)
            self._looked_s = self._elapsed() - begun_s
            share = self._shedding.share(offset, share)
        if self._joint is not None:
            self._joint.planned(self._elapsed(), offset, share)
        return offset

    def _choose(self, previous: Offset, own: Arrivals) -> Choice:
        if self._frozen is not None:
            wish = Wish(kept_tuples=own.tuples, least_fraction=1.0, reason="available now")
            return Choice(wish=wish)
        if self._joint is None:
            return self._decider.choose(previous, own, growing=self._growing)
        share = self._joint.share(self._elapsed())
        if share is not None:
            kept, least = share * own.tuples, self._gate.min_keep
            return Choice(wish=Wish(kept_tuples=kept, least_fraction=least, reason="joint share"))
        everything = own.beside(self._joint.pending(self._clock.now_s()))
        choice = self._decider.choose(previous, everything)
        share = min(1.0, choice.wish.kept_tuples / max(1, everything.tuples))
        wish = replace(choice.wish, kept_tuples=share * own.tuples)
        return replace(choice, wish=wish, share=share)

    def _archived(self, offset: Encoded) -> None:
        if self._archive is not None and not is_sentinel(offset):
            self._archive.add(offset)

    def _require_durable(self, start: Encoded) -> None:
        """Spark completes the previous batch before it shows the next plan, unless it logs late."""
        if not is_sentinel(start) and self._completed_seq != start["seq"]:
            raise SpillwayError(
                "asyncProgressTrackingEnabled is true: the gate needs the offset to be on disk"
                " before the batch runs; leave that option of writeStream out"
            )


def _require_same_stream(options: Mapping[str, str], pinned: Mapping[str, str]) -> None:
    for name in _IDENTITY:
        if name in pinned and options.get(name) != pinned[name]:
            raise SpillwayError(
                f"option '{name}' is '{options.get(name)}', but this checkpoint belongs to"
                f" '{pinned[name]}': keep the option, or start with a new checkpoint"
            )
