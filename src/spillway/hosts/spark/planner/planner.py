"""The gate's host in Spark's planner process: Spark's order of calls, logs, files and time.

Spark's order of calls: `latest(start)` plans a batch; Spark logs the offset; `completed(previous)`
arrives; `shown(start, end)` is the proof that the plan was logged; the batch runs; `latest` again.
A plan that is never shown was discarded. After a restart `shown` comes without `latest`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spillway.gate.company import ALONE, NOTHING, Company
from spillway.gate.offsets import Offset, decode, encode, is_sentinel
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting, beats, heartbeat
from spillway.hosts.spark.archives import archive_of
from spillway.hosts.spark.planner.around import (
    Around,
    Running,
    Silence,
    TriggerWatch,
    committed_s,
    gate_of,
    require_durable,
    require_leased,
    took_s,
)
from spillway.hosts.spark.planner.asking import Driver, lease_of
from spillway.hosts.spark.planner.finding import Attached
from spillway.hosts.spark.planner.joint import Joint, Lead
from spillway.hosts.spark.planner.sizing import Cores
from spillway.hosts.spark.planner.starts import first_offset
from spillway.hosts.spark.planner.stream import Shedding, Stream, require_the_same, resumed_options
from spillway.logs import catalog
from spillway.ports import Span
from spillway.templates.instance_store import InstanceStore

_SHORTEST_NAP_S = 0.002
_BUSY_NAP_S = 0.02  # the longest while tuples come

Encoded = dict[str, Any]


class Planner:
    def __init__(
        self,
        options: Mapping[str, str],
        gate: GateOptions,
        schema: Any = None,
        around: Around | None = None,
    ) -> None:
        around = around or Around()
        self._options = dict(options)
        self._gate_options = gate
        self._schema = schema
        self._clock, self._elapsed, self._sleep = around.clock, around.elapsed, around.sleep
        self._gate = gate_of(gate, self._options)
        self._ask = around.ask
        if self._ask is None and gate.channel is not None:
            self._ask = Driver(gate.channel, self._clock).ask
        self._attached = Attached(self._clock, self._elapsed)  # where no driver was named
        self._lease = lease_of(gate, self._ask, self._elapsed)
        self._ask = self._ask if self._lease is None else self._lease.ask
        self._joint = around.joint
        if self._joint is None and gate.joint is not None:
            self._joint = Joint(gate.joint, self._options)
        self.cores = Cores(self._options, gate.parallelism, self._gate.resized)
        self._triggers = TriggerWatch()
        self._archive = archive_of(gate.ledger, gate.checkpoint)
        self._instances = InstanceStore(Path(gate.instances)) if gate.instances else None
        self._stream: Stream | None = None
        self._shedding: Shedding | None = None
        self._looked_s = 0.0
        self._running: Running | None = None
        self._completed_seq: int | None = None
        self._frozen = False  # an AvailableNow run
        self._begun_at: tuple[Span, ...] | None = None  # where the log ended then
        self._busy_s = self._elapsed()  # when the last batch was planned
        self._silence = Silence(gate.target.delay_s, self._busy_s)

    def freeze(self) -> None:
        """From now on serve what is there at the first plan, all of it, and then nothing."""
        self._frozen = True

    def latest(self, start: Encoded) -> Encoded:
        """The end of the next batch, or `start` itself when there is nothing to do."""
        self._archive.hold()
        previous, self._looked_s = self._begin() if is_sentinel(start) else decode(start), 0.0
        if not is_sentinel(start):
            previous = self._resume(previous)
        if self._joint is not None:
            self._joint.enter(previous)
        if is_sentinel(start):
            return encode(previous)
        self._batch_ended(previous)
        self._archive.add(start)
        planned = self._next(previous)
        if planned is None:
            return start
        self._busy_s = self._elapsed()
        if self._instances is not None:
            planned = replace(planned, instances=self._instances.version())
        end = encode(planned if self._lease is None else self._lease.owned(planned))
        self._running = self._runs(end)
        return end

    def shown(self, start: Encoded, end: Encoded) -> Offset | None:
        """The batch from start to end, which Spark has logged; None when it is empty."""
        if start == end:
            return None
        self._archive.hold()
        batch = decode(end)
        if not is_sentinel(start):
            self._archive.add(start)
        running = self._running
        if running is None or running.end != end:
            if batch.offered_tuples > 0:
                require_the_same(self._options, batch.pinned, self._schema)
            self._running = Running(end=end, planned_s=self._elapsed(), shown=True, replayed=True)
        elif not running.shown:
            require_durable(start, self._completed_seq)
            require_leased(self._lease)
            running.shown = True
        return batch

    def completed(self, end: Encoded) -> None:
        if not is_sentinel(end):
            self._completed_seq = end["seq"]
            self._archive.add(end)
            if self._stream is not None:
                self._stream.log.commit({s.partition: s.stop for s in decode(end).stretches})

    def report(self) -> Encoded | None:
        """Where the log ends now, for the query's progress."""
        log = self._stream.log if self._stream else None
        ends = log.extent(self._clock.now_s()) if log else ()
        return {"partitions": {str(s.partition): s.stop for s in ends}} if log else None

    # -- starting

    def _begin(self) -> Offset:
        given, now_s = (self._options, self._gate_options, self._schema), self._clock.now_s()
        first, self._begun_at = first_offset(*given, now_s)
        return first

    def _resume(self, previous: Offset) -> Offset:
        """Goes on from there; the log's identity is added where it was not known then."""
        if self._stream is None:
            options = resumed_options(self._options, previous.pinned)
            log = catalog.open_log(options, self._schema)
            may_fall = options["source"] in catalog.STARTED
            self._stream = Stream(log, self._gate_options, may_fall, self._elapsed, self._begun_at)
            if self._gate_options.selection is not None:
                columns, look = self._schema or log, catalog.without_consequences(options)
                self._shedding = Shedding(self._gate_options.selection, look, columns)
        known = self._stream.identity(frozen=self._frozen)
        previous = replace(previous, pinned={**previous.pinned, **known})
        self._gate.resume(previous)
        return previous

    def _batch_ended(self, previous: Offset) -> None:
        running, self._running = self._running, None
        if running is None or not running.shown:
            return
        parts = [NOTHING] if running.end is None else [self._gate.part(previous)]
        if running.end is not None and running.end["seq"] != previous.seq:
            return
        if self._joint is not None:
            parts += self._joint.parts()
        duration_s, ended_s = self._timed(running)
        known_s = None if running.replayed else duration_s
        self._gate.ended(parts, duration_s=known_s, ended_s=ended_s)

    def _timed(self, running: Running) -> tuple[float | None, float]:
        """(duration, end) of the batch that has just ended; None: it may have ended before."""
        now_s, gate = self._clock.now_s(), self._gate_options
        since_s = self._elapsed() - running.planned_s
        if gate.trigger_s is None:
            return since_s + running.looked_s if self._triggers.asked(now_s) else None, now_s
        assert gate.checkpoint is not None
        ended_s = committed_s(Path(gate.checkpoint)) or now_s
        return took_s(ended_s - running.planned_at_s, since_s), ended_s

    # -- the next batch

    def _next(self, previous: Offset) -> Offset | None:
        if self._frozen:
            waiting = self._survey(previous, frozen=True)
            if waiting.tuples == 0:
                return None
            return self._gate.everything(previous, waiting, self._clock.now_s())
        lead = self._joint.lead() if self._joint is not None else None
        if lead is not None:
            return self._follow(previous, lead)
        planned, starts = self._lead(previous)
        if self._joint is not None:
            self._joint.leads(Lead.of(self._gate, starts, self.cores.tasks, self._lease))
            if starts and (planned is None or planned.heartbeat):
                self._running = replace(self._runs(None), shown=True)
        return planned

    def _runs(self, end: Encoded | None) -> Running:
        planned_s, at_s = self._elapsed(), self._clock.now_s()
        return Running(end=end, planned_s=planned_s, planned_at_s=at_s, looked_s=self._looked_s)

    def _lead(self, previous: Offset) -> tuple[Offset | None, bool]:
        """(this gate's batch, whether the query runs one): waits for tuples, here or at another
        gate of the query, and for the query's turn, at most as long as one poll."""
        deadline_s, nap_s = self._elapsed() + self._gate_options.poll_s, _SHORTEST_NAP_S
        while True:
            waiting, company = self._survey(previous), self._company()
            looked_s = self._elapsed()
            left_s = max(0.0, deadline_s - looked_s)
            if waiting.tuples > 0 or company.pending:
                self._silence.broken(looked_s)
                if self._may_start(previous, waiting, company, left_s):
                    more = self._elapsed() - looked_s > _SHORTEST_NAP_S  # came while it waited
                    if more or (self._lease is not None and self._lease.order.until is not None):
                        waiting, company = self._survey(previous), self._company()
                    return self._plan(previous, waiting, company), True
            else:
                self._gate.rest(previous, self._clock.now_s(), company)
                if self._gate.has_news or (self._lease is not None and self._lease.listens):
                    self._may_start(previous, waiting, company, 0.0)  # a last batch is told once
                if beat := self._beat(previous):
                    leave = self._lease is None or self._may_start(previous, waiting, company, 0.0)
                    return beat if leave else None, False
            if left_s <= 0.0:
                return None, False
            self._sleep(min(left_s, max(nap_s, self._silence.nap_s(looked_s))))
            nap_s = min(_BUSY_NAP_S, 1.5 * nap_s)

    def _may_start(
        self, previous: Offset, waiting: Waiting, company: Company, wait_s: float
    ) -> bool:
        """Whether it is the query's turn; it is, where no driver answers."""
        if (ask := self._ask or self._attached.ask()) is None:
            self.cores.look()
            return True
        report = self._gate.report(
            previous, waiting.arrivals, self._clock.now_s(), wait_s=wait_s, company=company
        )
        order = ask(report)
        if order is not None:
            self._gate.reported()
            self.cores.told(order.parallelism)
        self._gate.obey(order)
        return order is None or order.may_start

    def _beat(self, previous: Offset) -> Offset | None:
        gate, idle_s = self._gate_options, self._elapsed() - self._busy_s
        due = beats(previous, idle_s, gate.quiet_s, rows=gate.heartbeat_rows)
        return heartbeat(previous, self._clock.now_s()) if due else None

    def _plan(self, previous: Offset, waiting: Waiting, company: Company) -> Offset | None:
        """The decision is made for the whole query, whether or not this gate has tuples."""
        planned = self._gate.plan(previous, waiting, self._clock.now_s(), company)
        if waiting.tuples == 0:
            return self._beat(previous)
        # A few tuples of this gate cannot say where the keys of all of them are to be cut.
        thin = waiting.arrivals.tuples < sum(span.tuples for span, _ in company.pending)
        led = self._gate.led
        planned = self._planned(planned, previous, led.share if thin else None)
        if self._shedding is not None and not thin:
            share = self._shedding.share(planned, led.share)
            self._gate.led = replace(led, share=share)
        return planned

    def _follow(self, previous: Offset, lead: Lead) -> Offset | None:
        """This gate's part of what another one has decided."""
        if self._lease is not None:
            self._lease.led(lead.order)
        waiting = self._survey(previous)
        if waiting.tuples == 0:
            return self._beat(previous) if self._lease is None or self._lease.holds else None
        if not lead.starts:
            return None
        self.cores.told(lead.parallelism)
        planned = self._gate.follow(previous, waiting, lead.led, self._clock.now_s())
        planned = replace(planned, prices=lead.prices or planned.prices)
        return self._planned(planned, previous, lead.led.share)

    def _planned(self, planned: Offset, previous: Offset, led: float | None) -> Offset:
        """With what a shedder chose that looks at the data; the other gates are told."""
        if self._shedding is not None and not self._gate_options.dry_run:
            begun_s = self._elapsed()
            planned = self._shedding.selected(planned, previous, led)
            self._looked_s = self._elapsed() - begun_s
        if self._joint is not None:
            self._joint.planned(planned, self._gate.part(planned))
        return planned

    def _survey(self, previous: Offset, *, frozen: bool = False) -> Waiting:
        assert self._stream is not None
        bound = None if self._lease is None else self._lease.bound(previous.gate.rpartition("/")[2])
        return self._stream.survey(previous, self._clock.now_s(), frozen=frozen, bound=bound)

    def _company(self) -> Company:
        return ALONE if self._joint is None else self._joint.company(self._clock.now_s())
