"""The gate: told what ended, what waits and what the driver allows, it answers with an offset.

Pure: no Spark, no I/O, no clock of its own. Every host runs this very object: the Spark planner
with real time and real logs, the virtual host with neither.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spillway.gate.ahead import Ahead, alone
from spillway.gate.arrivals import Arrivals
from spillway.gate.company import ALONE, Company, Led, Part, record_of
from spillway.gate.cutting import Terms
from spillway.gate.entry import EntryShare
from spillway.gate.measuring import Meter, Standing
from spillway.gate.news import News
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut, Pace, cut, dry
from spillway.gate.planning import Settings, Waiting, next_offset
from spillway.gate.restraint import Restraint
from spillway.load import laws
from spillway.load.batch_model import BatchModel
from spillway.loop import tick
from spillway.model import (
    ADMIT_ALL,
    Backlog,
    Decided,
    Decision,
    Ended,
    KeepFraction,
    Measurement,
    Order,
    Prices,
    Report,
    Target,
)
from spillway.ports import Decider, LoadManager

_NO_PERIOD_YET = Decision(action=ADMIT_ALL, reason="admits everything until a period has passed")


class Gate:
    """One query's gate, or the one of its gates that decides for all."""

    def __init__(self, options: GateOptions, law: LoadManager | None = None) -> None:
        self.options = options
        law = law or laws.make(options.manager, **options.law_parameters)
        self._law = self._first_law = law
        self._settings = Settings.of(options)
        self._model = BatchModel()
        self._restraint = Restraint(options, adapts=self._law.adapts)
        self._entry = EntryShare()
        self._pace: Pace | None = None
        self._meter: Meter | None = None
        self._left_behind = False  # the last batch was smaller than wished: not tried yet
        self._order = Order(target=options.target)
        self._rested = False  # the law knows that nothing waits
        self._alone = False  # there is a driver, but it does not answer
        self._standing: Standing | None = None
        self._decision = _NO_PERIOD_YET
        self._news = News()
        self.led = Led()

    # -- what it is told

    def resume(self, previous: Offset) -> None:
        """Before the first plan of a run: where the query stands."""
        if self._pace is None:
            options = self.options
            self._pace = Pace.at_start(options.first_batch, previous.prices, options.target)
            self._meter = Meter(self.query(previous), options.class_name)
            self._news.completed_tuples = previous.totals.admitted

    def query(self, previous: Offset) -> str:
        return self.options.query or self.options.joint or previous.gate

    def ended(self, parts: Sequence[Part], *, duration_s: float | None, ended_s: float) -> None:
        """A batch has ended, with these parts of the query's gates in it, its own first.

        Without a duration it was replayed after a restart: that took other work as well and
        teaches nothing.
        """
        assert self._pace is not None
        assert self._meter is not None
        own, record = (record_of(of, duration_s or 0.0, ended_s) for of in (parts[:1], parts))
        self._pace = self._pace.after(own, self._target)
        delays = tuple(part.delays(ended_s) for part in parts if part.arrived is not None)
        done = Ended(record=record, delays=delays)
        self._news.completed_tuples += sum(d.tuples for d in done.delays)
        if record.scanned_tuples == 0:
            return
        if duration_s is not None:
            self._model.learn(record)
            self._restraint.ended(record)
        self._meter.ended(done)
        self._news.of_batch(done)

    def obey(self, order: Order | None) -> None:
        """What the driver said last; None: it does not answer, or there is none."""
        self._alone = order is None and self.options.channel is not None
        before, self._order = self._order, order or alone(self._order)
        if self._order.law != before.law:
            self._law = laws.chosen(self._order.law) or self._first_law
            self._decision, self._entry = _NO_PERIOD_YET, EntryShare()
            self._restraint.serve(adapts=self._law.adapts)

    def resized(self, factor: float) -> None:
        """Its batches have so many times the cores from now on."""
        self._model.resized(factor)

    # -- what it answers

    @property
    def prices(self) -> Prices | None:
        """What this run has learned so far."""
        return self._model.prices()

    @property
    def has_news(self) -> bool:
        return bool(self._news)

    def report(
        self,
        previous: Offset,
        arrivals: Arrivals,
        now_s: float,
        *,
        wait_s: float = 0.0,
        company: Company = ALONE,
    ) -> Report:
        """For the driver, before a turn is asked for."""
        everything = company.beside(arrivals)
        totals = previous.totals
        admitted = totals.admitted + company.admitted_tuples
        shed = totals.shed + company.shed_tuples
        return Report(
            query=self.query(previous),
            class_name=self.options.class_name,
            time_s=now_s,
            offered_tuples=admitted + shed + everything.tuples,
            admitted_tuples=admitted,
            shed_tuples=shed,
            completed_tuples=self._news.completed_tuples,
            backlog=everything.backlog(now_s, self._order.target),
            ended=tuple(self._news.ended),
            decided=tuple(self._news.decided),
            prices=self.prices,
            wait_s=wait_s,
            overloaded=self._restraint.must_go,
            gives_way=self._restraint.gives_way,
        )

    def reported(self) -> None:
        """The driver has the last report."""
        self._news.told()

    def plan(
        self, previous: Offset, waiting: Waiting, now_s: float, company: Company = ALONE
    ) -> Offset:
        """The next batch. Something waits, here or at another gate of the query."""
        everything = company.beside(waiting.arrivals)
        meter, standing = self._stand(previous, everything, now_s, company)
        if self._rested:
            self._rested = False  # the period begins with what has just come
            meter.begin(replace(standing, backlog=Backlog()))
        tick(self, {self.options.class_name: self._decides()}, self)
        decision = self._restraint.overruled(self._decision, self._order)
        ahead, entry = Ahead.of(self._order, self.options), self._entry if self._by_period else None
        decision = ahead.bounded(decision, everything, entry)
        terms = self._terms(now_s, decision, waiting.arrivals)
        if self._alone:
            decision = replace(decision, reason=f"no control loop: {decision.reason}")
        given = ahead.within(terms.cut(decision, everything, waiting.arrivals))
        self._left_behind, tuples = given.bounded, waiting.arrivals.tuples
        self.led = Led(share=given.share, reach=given.cut.reach_tuples / tuples if tuples else 1.0)
        return self._offset(previous, waiting, given.cut, self._settings, now_s)

    def rest(self, previous: Offset, now_s: float, company: Company = ALONE) -> None:
        """Nothing waits. A law of a period hears of it once: what it remembers of an overload is
        past, and the next tuple comes under no share of it."""
        self._restraint.quiet(now_s)
        if not self._by_period or self._rested:
            return
        meter, standing = self._stand(previous, company.beside(Arrivals.pool([])), now_s, company)
        if meter.is_due(standing, self.options.period_s):
            self._rested = True
            tick(self, {self.options.class_name: self._restraint.decider(self._law)}, self)
            self._restraint.rest()

    def follow(self, previous: Offset, waiting: Waiting, led: Led, now_s: float) -> Offset:
        """The same batch at another gate of the query, with the share decided for all. What the
        leader leaves for later stays here too: one side of a join must not run ahead."""
        waits, share = waiting.arrivals.tuples, led.share
        tuples = min(waits, math.ceil(led.reach * waits))
        given = cut(share * tuples, share, tuples, self._tried, f"joint share {share:.3g}")
        return self._offset(previous, waiting, given, self._settings, now_s)

    def everything(self, previous: Offset, waiting: Waiting, now_s: float) -> Offset:
        """All of what waits, for a query that serves what is there and then stops."""
        tuples, settings = waiting.arrivals.tuples, replace(self._settings, shares=(), split=None)
        given = cut(tuples, 1.0, tuples, self._tried, "available now")
        return self._offset(previous, waiting, given, settings, now_s)

    # -- the loop passes through here

    def observe(self) -> Iterator[Measurement]:
        """At every batch, or at the first one after a period, with the true time that passed."""
        assert self._meter is not None
        assert self._standing is not None
        due = self._rested or self._meter.is_due(self._standing, self.options.period_s)
        if self._by_period and not due:
            return
        share = self._entry.now if self._by_period else 1.0
        yield self._meter.measure(self._standing, self.prices, share)

    def act(self, measurement: Measurement, decision: Decision) -> None:
        self._decision = decision
        action = self._restraint.overruled(decision, self._order).action
        if self._by_period and isinstance(action, KeepFraction):
            self._entry.set(action.fraction, measurement.time_s)

    def record(self, measurement: Measurement, decision: Decision) -> None:
        done = self._restraint.overruled(decision, self._order)
        self._news.of_decision(Decided(measurement=measurement, decision=done))

    # -- deciding

    @property
    def _target(self) -> Target:
        return self._restraint.target(self._order)

    @property
    def _by_period(self) -> bool:
        return self._law.cadence == "period"

    @property
    def _tried(self) -> Pace:
        """What a batch may hold by those before it, and by what the user allows."""
        assert self._pace is not None
        return self._pace.within(self.options.max_batch, "max_batch")

    def _stand(
        self, previous: Offset, everything: Arrivals, now_s: float, company: Company
    ) -> tuple[Meter, Standing]:
        assert self._meter is not None
        totals, target = previous.totals, self._target
        self._standing = Standing(
            now_s=now_s,
            target=target,
            admitted_tuples=totals.admitted + company.admitted_tuples,
            shed_tuples=totals.shed + company.shed_tuples,
            backlog=everything.backlog(now_s, target),
            waiting_share=self._entry.of(everything) if self._by_period else 1.0,
            turn=self._order.turn,
        )
        return self._meter, self._standing

    def _decides(self) -> Decider:
        """What gathered until something has to go is no law's doing."""
        assert self._standing is not None
        self._left_behind |= self._restraint.look(self._standing, self.prices)
        return self._restraint.decider(self._law)

    def _terms(self, now_s: float, decision: Decision, own: Arrivals) -> Terms:
        """`decision` is what is done, which may be another than the law's."""
        assert self._pace is not None
        assert self._standing is not None
        pace, restraint = self._pace, self._restraint
        as_it_came = self._by_period and decision.action is self._decision.action
        most = min(pace.kept_tuples, own.tuples)  # bounds are of this gate alone
        if restraint.probes(self._standing, decision, most):
            pace = pace.within(most // 2, "probing")
        return Terms(
            options=self.options,
            target=self._standing.target,
            prices=self.prices,
            pace=pace,
            entry=self._entry if as_it_came and restraint.lets(self._law) else None,
            adapts=self._law.adapts,
            decides_now=self._law.cadence == "batch",
            left_behind=self._left_behind,
            restrained=not restraint.must_go,
            most_tuples=restraint.catch_up.most_tuples if restraint.catch_up else None,
            least_share=max(restraint.least_share, self._order.min_keep),
            now_s=now_s,
        )

    def _offset(
        self, previous: Offset, waiting: Waiting, given: Cut, settings: Settings, now_s: float
    ) -> Offset:
        if settings.dry_run:
            given = dry(given, self._tried)
        prices = self.prices or previous.prices
        return next_offset(previous, waiting, given, settings, now_s=now_s, prices=prices)

    def part(self, batch: Offset) -> Part:
        """What a batch of this gate holds, as the load manager counts it."""
        return Part.of(batch, self.options.split)
