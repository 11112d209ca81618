"""When a load manager's decision gives way to the data: nothing is shed without need.

The class is within its share (the driver says so); or nothing shows that something has to go, and
what waits is worked off, late and whole. A target that cannot hold whatever is shed is missed, and
the reason says what is in the way.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from spillway.gate.evidence import Evidence
from spillway.gate.measuring import Standing
from spillway.gate.options import GateOptions
from spillway.gate.room import Reach, Room
from spillway.gate.shed_limit import ShedAccount
from spillway.model import (
    ADMIT_ALL,
    SHORTEST_DELAY_S,
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    Measurement,
    Order,
    Prices,
    Target,
)
from spillway.ports import Cadence, Decider, LoadManager

# A spared query keeps tuples that come late because others are in its way. After downtime its
# backlog is older than that: then it cuts what is stale, once, as any gate does.
HOPELESS_TARGETS = 5.0
_BEHIND = 2.0  # intervals of batches: a backlog that spans more is being caught up
_KNOWN = 5.0  # intervals: so long a catch-up takes before it is known what arrives meanwhile
_SILENCE = 2.0  # targets without a tuple end an overload
_AIM = 0.95  # of the target: what the papers' laws steer by
_PROBE_EVERY = 6  # batches
_PROBE_IN_DOUBT = 2
_PROBE_TUPLES = 200  # at least: fewer cost nothing
_PROBE_SHARE = 0.5  # of the target: what a probed batch and the next may take of it


@dataclass(frozen=True, kw_only=True)
class CatchUp:
    """What waited before the gate could serve it."""

    behind_s: float
    done_s: float | None  # until it is worked off; None: not known yet
    most_tuples: int | None  # that can be worked off within `catch_up_within`; None: all of them

    def __str__(self) -> str:
        done = "" if self.done_s is None else f", done in about {self.done_s:.0f} s"
        return f"catching up: {self.behind_s:.0f} s behind{done}"


class Restraint:
    """Told where the query stands; decides in a law's place while nothing has to go."""

    cadence: ClassVar[Cadence] = "batch"
    adapts: ClassVar[bool] = True

    def __init__(self, options: GateOptions, *, adapts: bool) -> None:
        self._options, self._adapts = options, adapts
        self._evidence = Evidence(options.max_batch)
        self._reach = Reach(options.trigger_s)
        self._since_probe = 0
        self._looked: Standing | None = None  # last
        self._began: Standing | None = None  # of the catch-up under way
        self.catch_up: CatchUp | None = None  # under way
        self.must_go = False  # whether something has to go
        self._account = ShedAccount(options.max_shed) if options.max_shed else None
        self.least_share = 0.0  # of what waits, that must be kept whatever the delay

    def serve(self, *, adapts: bool) -> None:
        """Another law decides from now on."""
        self._adapts = adapts

    def ended(self, batch: BatchRecord) -> None:
        self._evidence.ended(batch)
        self._since_probe += 1

    @property
    def gives_way(self) -> bool:
        """The delay, because `max_shed` is reached."""
        return self.must_go and self.least_share > 0.0

    def target(self, order: Order) -> Target:
        """What is steered by: the target, as far as shedding can hold it."""
        if not self._adapts:
            return order.target
        return self._reach.of(order.target, order.turn, self._evidence.fixed_s)

    def look(self, now: Standing, prices: Prices | None) -> bool:
        """At every plan, before a decision. Whether it now shows that something has to go."""
        before, self._looked = self.must_go, now
        room = Room.of(now.target, now.turn, self._options.trigger_s)
        behind_since_s = None if self._began is None else self._began.now_s
        self._evidence.look(now, room, prices, behind_since_s)
        self.catch_up = self._caught_up(now, room)
        self.must_go = self._evidence.overloaded
        if self._options.backlog == "cut" and self.catch_up is not None:
            self.must_go, self.catch_up = True, None
        if self._account is not None:
            self.least_share = self._account.least_share(now)
        return self.must_go and not before

    def lets(self, law: LoadManager) -> bool:
        """Whether a law does what it says: nothing holds back one that does not answer to load."""
        return self.must_go or not law.adapts

    def decider(self, law: LoadManager) -> Decider:
        """A law that steers by what it did before is asked only when something has to go: it would
        take what nobody shed for an error of its own."""
        if law.cadence == "batch":
            return law
        return Inside(law) if self.lets(law) else self

    def quiet(self, now_s: float) -> None:
        """Nothing waits. Where that lasts, an overload is over."""
        looked = self._looked
        if looked is not None and now_s - looked.now_s >= _SILENCE * looked.target.delay_s:
            self.rest()

    def rest(self) -> None:
        """Nothing waits: an overload is over."""
        self.must_go, self.catch_up, self._began = False, None, None
        self._evidence.rest()

    def decide(self, measurement: Measurement) -> Decision:
        return Decision(action=ADMIT_ALL, reason=self._why_all())

    def overruled(self, decision: Decision, order: Order) -> Decision:
        backlog = Backlog() if self._looked is None else self._looked.backlog
        if not self._adapts or _keeps(decision, backlog):
            return decision
        if order.spared and backlog.oldest_age_s <= HOPELESS_TARGETS * order.target.delay_s:
            reason = "the class's load is within its share"
            return replace(decision, action=ADMIT_ALL, reason=reason)
        if self.must_go:
            return self._limited(decision)
        return replace(decision, action=ADMIT_ALL, reason=self._why_all())

    def _why_all(self) -> str:
        said = [str(self.catch_up)] if self.catch_up else []
        if self._reach.why_not:
            said.append(self._reach.why_not)
        return "; ".join(said) or "nothing shows that something has to go"

    def _limited(self, decision: Decision) -> Decision:
        reason = decision.reason
        if self._reach.why_not:
            reason = f"{reason}; {self._reach.why_not}"
        if self._account is not None and self.gives_way:
            reason = f"{reason}; max_shed {self._account.limit.text}: the delay gives way"
        return replace(decision, reason=reason)

    def probes(self, now: Standing, decision: Decision, most: int) -> bool:
        """Whether this batch is half as large as it could be, so that two sizes can be compared.

        It is where that delays nobody beyond half of the target, or where all depends on it.
        """
        evidence, backlog = self._evidence, now.backlog
        if most < _PROBE_TUPLES:
            return False
        if evidence.overloaded or not (self._adapts and _keeps(decision, backlog)):
            return False
        takes_s = backlog.oldest_age_s + 3.0 * evidence.last_s
        idle = takes_s <= _PROBE_SHARE * now.target.delay_s
        if self._since_probe < (_PROBE_EVERY if idle else _PROBE_IN_DOUBT):
            return False
        if not idle and not evidence.doubtful:
            return False
        self._since_probe = 0
        return True

    def _caught_up(self, now: Standing, room: Room) -> CatchUp | None:
        if self._evidence.overloaded or now.backlog.oldest_age_s <= _BEHIND * room.interval_s:
            self._began = None
            return None
        if self._began is None or now.now_s < self._began.now_s:
            self._began = now
        began, behind_s = self._began, now.backlog.oldest_age_s
        since_s, most_per_s = now.now_s - began.now_s, self._evidence.most_per_s * now.turn
        if since_s < _KNOWN * room.interval_s or math.isinf(most_per_s):
            return CatchUp(behind_s=behind_s, done_s=None, most_tuples=None)
        # What made the backlog came before it began: it is no load that goes on.
        spare_per_s = most_per_s - (now.offered_tuples - began.offered_tuples) / since_s
        done_s = now.backlog.pending_tuples / spare_per_s if spare_per_s > 0.0 else None
        most = max(0.0, spare_per_s) * self._options.catch_up_within_s
        most = round(max(most, most_per_s * room.interval_s))  # never less than a batch holds
        return CatchUp(behind_s=behind_s, done_s=done_s, most_tuples=most)


def _keeps(decision: Decision, backlog: Backlog) -> bool:
    action = decision.action
    if isinstance(action, KeepFraction):
        return action.fraction >= 1.0
    return action.tuples >= backlog.pending_tuples


class Inside:
    """A law of a period or a buffer, that steers by a little less than the target.

    Such a law brings its mean to what it steers by while batches are even. Where they differ by 10
    to 15 %, as on a machine with other work, its mean ends 1 to 10 % above that.
    """

    def __init__(self, law: LoadManager) -> None:
        self._law = law

    def decide(self, measurement: Measurement) -> Decision:
        target = measurement.target
        aimed = replace(target, delay_s=max(SHORTEST_DELAY_S, _AIM * target.delay_s))
        return self._law.decide(replace(measurement, target=aimed))
