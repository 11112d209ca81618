"""The driver's part of the control path: targets, quotas and turns, by query. Pure.

It decides nothing about shedding: that is the gates' work. Every few periods it moves capacity
between the classes, and tells every query what it can use of the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spillway.classes.accounts import Accounts, Period
from spillway.classes.balance import Balance, ClassLoad, QueryLoad, balance, turns
from spillway.classes.capacity import original_shares
from spillway.classes.policies import make_policy
from spillway.classes.turns import Turns
from spillway.gate.delays import delay_s
from spillway.model import LawChoice, Order, Report, Target

# The part of a target above which a class counts as late: a quantile leaves less room for a batch
# that takes longer than usual. Below EARLY of that part, others get their slots back.
LATE = {"mean": 0.85, "p95": 0.75, "p99": 0.6}
EARLY = 0.7
LEAST_OWNED = 0.01  # of a machine: nobody stands still


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassTerms:
    """What a class was promised."""

    priority: int
    target: Target
    lend: float = 1.0  # the largest part of its share that it lends
    adapts: bool = True  # its load manager answers to the load
    law: LawChoice | None = None  # another one than its gates began with
    min_keep: float = 0.0  # 1: it sheds nothing


class ClassControl:
    """`slots` batches may be in flight on a machine of `machine` batch-seconds per second."""

    def __init__(
        self,
        classes: Mapping[str, ClassTerms],
        policy: str,
        *,
        slots: int,
        machine: float,
        cycle_periods: int,
        now_s: float,
    ) -> None:
        self.classes = dict(classes)
        self._owned: Mapping[str, float] = {}  # shares, where they are not those by priority
        self._machine, self._cycle_periods = machine, cycle_periods
        self.turns = Turns(self._originals(), slots=slots, now_s=now_s, first=self._highest())
        self.accounts = Accounts(lambda: list(self.classes))
        self.use(policy)
        lowest = min(c.priority for c in classes.values())
        self._spare({n: c.priority > lowest for n, c in classes.items()})  # until its load is known
        self._interval_s = dict.fromkeys(classes, 0.0)
        self._turn: dict[str, float] = {}  # by query
        self._output_rate: dict[str, float] = {}  # of its last batch
        self._most_keep: Mapping[str, float] = {}  # by query
        self._started_s: dict[str, float] = {}
        self._used: dict[str, float] = {}  # of what its target leaves, by the last delay measured
        self._shed: dict[str, int] = {}
        self._periods = 0
        self._busy_s, self._cycle_since_s = 0.0, now_s

    # -- what may change while it runs

    def use(self, policy: str) -> None:
        """The policy of the next cycles; with `none` nobody lends and nobody is slowed."""
        self._policy = make_policy(policy)
        self._slow = self.turns.lends = policy != "none"

    def change(self, name: str, terms: ClassTerms) -> None:
        self.classes[name] = terms
        before, self.turns.first = self.turns.first, self._highest()
        # The highest class has a slot of its own, where there is a highest.
        self.turns.slots += (self.turns.first is not None) - (before is not None)

    def own(self, shares: Mapping[str, float]) -> None:
        """What the classes own of this machine where it is one of several; none: by priority."""
        least = {name: max(LEAST_OWNED, shares.get(name, 0.0)) for name in self.classes}
        total = sum(least.values())
        self._owned = {n: share / total for n, share in least.items()} if shares else {}
        self.turns.set_quotas(self._originals())

    def resize(self, slots: int, machine: float) -> None:
        """The machine has become larger or smaller."""
        self.turns.slots, self._machine = slots, machine
        self.turns.withhold(self.turns.withheld)

    def keep_at_most(self, most_keep: Mapping[str, float]) -> None:
        """For the sake of others behind this machine; a query that is not named keeps all."""
        self._most_keep = dict(most_keep)

    # -- what queries say, and what they are told

    def heard(self, report: Report, now_s: float) -> None:
        """A query reports: the batch that it ran has ended."""
        self.accounts.heard(report, now_s)
        self.turns.ended(report.query, sum(b.record.duration_s for b in report.ended))

    def ask(self, report: Report, now_s: float) -> None:
        """Put it in line for a turn."""
        if report.ended:
            last = report.ended[-1].record
            self._output_rate[report.query] = last.kept_tuples / max(last.duration_s, 1e-6)
        rate = self._output_rate.get(report.query, 0.0)
        started_s = self._started_s.get(report.query, 0.0)
        if started_s > now_s:  # the clock was set back
            started_s = 0.0
        from_s = started_s + self._interval_s[report.class_name]
        self.turns.ask(report.query, report.class_name, rate, now_s, from_s)

    def grant(self, now_s: float) -> list[str]:
        granted = self.turns.grant(now_s)
        self._started_s |= dict.fromkeys(granted, now_s)
        return granted

    def order(self, report: Report, may_start: bool) -> Order:
        terms = self.classes[report.class_name]
        return Order(
            target=terms.target,
            may_start=may_start,
            turn=self._turn.get(report.query, 1.0),
            spared=self._spared[report.class_name] and terms.adapts,
            law=terms.law,
            min_keep=terms.min_keep,
            most_keep=self._most_keep.get(report.query, 1.0),
        )

    def leave(self, query: str) -> None:
        self.turns.leave(query)
        self.accounts.left(query)
        self._started_s.pop(query, None)
        self._turn.pop(query, None)
        self._output_rate.pop(query, None)

    def loads(self, name: str, now_s: float) -> Mapping[str, QueryLoad]:
        return self.accounts.loads(name, now_s, self._is_busy)

    def _own_loads(self, name: str, now_s: float) -> Mapping[str, QueryLoad]:
        """Without what is dropped for others: that asks for nothing here."""
        return {
            query: replace(load, rate_per_s=load.rate_per_s * self._most_keep.get(query, 1.0))
            for query, load in self.loads(name, now_s).items()
        }

    def _is_busy(self, query: str) -> bool:
        """It runs, or waits for its turn: that it says nothing meanwhile does not mean silence."""
        return self.turns.is_running(query) or self.turns.is_asking(query)

    # -- every period

    def period_ended(self, now_s: float) -> Mapping[str, Balance]:
        """What was decided, when a cycle has ended; otherwise nothing."""
        periods = self.accounts.take_periods()
        late = {name: self._late(name, period) for name, period in periods.items()}
        self._used |= {name: used for name, used in late.items() if used is not None}
        for name, period in periods.items():
            self._shed[name] = self._shed.get(name, 0) + period.shed_tuples
            self._busy_s += period.busy_s
        self._make_room(late, now_s)
        self._periods += 1
        if self._periods < self._cycle_periods:
            return {}
        elapsed_s = now_s - self._cycle_since_s
        # Batches that run side by side take longer, and so do their tuples: loads are compared
        # with the batch time that was really given, more than the cores when more batches run.
        given = self._busy_s / elapsed_s if elapsed_s > 0.0 else 0.0
        given = min(given, float(self.turns.slots))  # a batch counts when it ends, all at once
        shed, self._shed, self._periods = self._shed, {}, 0
        self._busy_s, self._cycle_since_s = 0.0, now_s
        return self._redistribute(shed, max(self._machine, given), now_s)

    def _late(self, name: str, period: Period) -> float | None:
        """The delay, as a part of what the target leaves."""
        target = self.classes[name].target
        measured_s = delay_s(period.delays, target)
        return (
            None if measured_s is None else measured_s / (LATE[target.statistic] * target.delay_s)
        )

    def _make_room(self, late: Mapping[str, float | None], now_s: float) -> None:
        """Fewer batches of the classes that are not spared while one that is comes late.

        One slot is withheld in a period in which it is late, and one is given back in a period in
        which all such classes are early. A target below the fixed price of a batch counts for
        nothing: room would not help.
        """
        used = [
            value
            for name, value in late.items()
            if self._spared[name] and value is not None
            if all(
                query.fixed_s < self.classes[name].target.delay_s
                for query in self.loads(name, now_s).values()
            )
        ]
        if used and max(used) > 1.0:
            self.turns.withhold(self.turns.withheld + 1)
        elif not used or max(used) < EARLY:
            self.turns.withhold(self.turns.withheld - 1)

    def _redistribute(
        self, shed: Mapping[str, int], machine: float, now_s: float
    ) -> Mapping[str, Balance]:
        originals = self._originals()
        queries = {name: self._own_loads(name, now_s) for name in self.classes}
        loads = [
            ClassLoad(
                name=name,
                priority=c.priority,
                target=c.target,
                quota=self.turns.quotas[name],
                original=originals[name],
                sheds=shed.get(name, 0) > 0,
                late=self._used.get(name, 0.0) > 1.0,
                queries=tuple(queries[name].values()),
                lend=c.lend,
            )
            for name, c in self.classes.items()
        ]
        decided = balance(loads, self._policy, machine, slow=self._slow)
        self._interval_s = {name: new.interval_s for name, new in decided.items()}
        self._spare({name: new.spared for name, new in decided.items()})
        self.turns.set_quotas({name: new.quota for name, new in decided.items()})
        self._divide(queries, machine)
        return decided

    def _spare(self, spared: Mapping[str, bool]) -> None:
        self._spared = spared
        self.turns.spared = frozenset(name for name, is_spared in spared.items() if is_spared)

    def _divide(self, queries: Mapping[str, Mapping[str, QueryLoad]], machine: float) -> None:
        """What each query can use. With a slot for everybody, one batch after the other."""
        everybody = sum(len(found) for found in queries.values())
        self._turn = {}
        if everybody <= machine and self._slow:
            return
        for name, found in queries.items():
            capacity = self.turns.quotas[name] * machine
            active = {n: load for n, load in found.items() if load.rate_per_s > 0.0}
            self._turn |= turns(active, self.classes[name].target, capacity)

    @property
    def owned(self) -> Mapping[str, float]:
        """What each class owns of this machine, whatever it has lent or borrowed."""
        return self._originals()

    def _originals(self) -> dict[str, float]:
        if self._owned:
            return dict(self._owned)
        return original_shares({name: c.priority for name, c in self.classes.items()})

    def _highest(self) -> str | None:
        if len({c.priority for c in self.classes.values()}) < 2:
            return None
        return min(self.classes, key=lambda name: (-self.classes[name].priority, name))
