"""What the coordinator answers with: actions, and everything it wanted but did not ask for."""

from dataclasses import dataclass

from spillway.cluster.actions import ClusterAction
from spillway.cluster.prices import Prices
from spillway.cluster.views import ClusterView
from spillway.errors import require

DAY_S = 86_400.0  # nothing is remembered for longer


@dataclass(frozen=True, kw_only=True, slots=True)
class CoordinatorSettings:
    """Loads are offered load over capacity: 1.0 is a full node, more has to be shed.

    A node above `upper` for `patience_reports` reports in a row is relieved down to `target`; one
    below `lower` for `idle_reports` is emptied and released, if the others can take its queries
    without passing `target`. They can if they could at any time within the last `hold_s`.

    With `prices` it is ski-rental both ways: a node that is missed costs what is shed for
    `reaction_s`; idling that long at its own price, it may go, and shedding that much, it may come.
    Without, shedding counts as dearer than any node.
    """

    upper: float = 0.9
    target: float = 0.8
    lower: float = 0.65
    patience_reports: int = 3
    idle_reports: int = 10
    cooldown_s: float = 600.0  # a query that moved, a node that started: left alone for so long
    min_nodes: int = 1
    max_nodes: int = 200  # the budget: nodes that may be paid for at once
    max_moves: int = 40  # migrations under way at once
    quota_step: float = 0.05  # smaller changes of a quota are not worth an action
    hold_s: float = 3600.0  # load of so long ago is expected again; without prices
    reaction_s: float = 600.0  # from an overload until a new node has taken queries over
    prices: Prices | None = None
    give_up_s: float = 900.0  # an action that was not carried out by then counts as failed
    effect_s: float = 60.0  # effects are visible so long after an action has finished

    def __post_init__(self) -> None:
        loads = (self.lower, self.target, self.upper)
        require(0.0 < loads[0] < loads[1] < loads[2], "(lower, target, upper)", loads, "ascending")
        reports = (self.patience_reports, self.idle_reports)
        require(min(reports) >= 1, "(patience, idle) reports", reports, "1 or more each")
        nodes = (self.min_nodes, self.max_nodes)
        require(1 <= nodes[0] <= nodes[1], "(fewest, most) nodes", nodes, "ascending from 1")
        require(self.max_moves >= 1, "migrations at once", self.max_moves, "1 or more")
        times = (self.hold_s, self.reaction_s)
        require(min(times) > 0.0, "(hold, reaction) in seconds", times, "> 0 each")

    def held_s(self, view: ClusterView) -> float:
        """How long load is expected again: with prices, until a node has cost what it averts."""
        if self.prices is None:
            return self.hold_s
        worth = self.prices.worth(view)
        return min(DAY_S, max(self.reaction_s, worth * self.reaction_s))


@dataclass(frozen=True, kw_only=True, slots=True)
class Withheld:
    """Something wanted and not asked for: vetoed (then `action` is what) or infeasible."""

    subject: str  # node, query or class
    reason: str
    action: ClusterAction | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Directive:
    """One answer to one round of reports.

    `noticed` is the outcome of the passive step: which earlier actions have arrived, which failed.
    """

    actions: tuple[ClusterAction, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    noticed: tuple[str, ...] = ()
