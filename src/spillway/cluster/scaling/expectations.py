"""What was expected of each action, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from spillway.cluster.actions import ClusterAction, ExpectedEffect, MoveOperator
from spillway.cluster.views import ClusterView

HELPED = 0.25  # below this share of the expected change an action counts as no help
SIMILAR = 0.05  # utilisations this close are the same situation
SATURATED = 0.98  # a host that works off its backlog: utilisation says nothing yet
PATIENCE = 10.0  # check periods until an effect must have shown, and until a failure is forgotten


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One expectation, checked."""

    time_s: float
    expected: ExpectedEffect
    measured: float

    @property
    def achieved(self) -> float:
        return self.expected.achieved(self.measured)

    @property
    def helped(self) -> bool:
        return self.achieved >= HELPED


@dataclass
class _Open:
    expected: ExpectedEffect
    destinations: dict[str, str] = field(default_factory=dict)  # operator -> host
    given_up_s: float = 0.0
    due_s: float | None = None  # set once all moves are seen done


class Expectations:
    """Records expected effects and checks each when its moves are done and have settled.

    Moves with one expected effect are one expectation. An effect on a host that no longer exists
    has come true: that is what emptying it was for.
    """

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._failed: dict[str, Outcome] = {}  # by host: relief that did not help
        self.outcomes: list[Outcome] = []

    def record(self, actions: Iterable[ClusterAction], now_s: float) -> None:
        moves: dict[ExpectedEffect, _Open] = {}
        for action in actions:
            one = moves.setdefault(action.expected, _Open(action.expected))
            one.given_up_s = now_s + PATIENCE * action.expected.within_s
            if isinstance(action, MoveOperator):
                one.destinations[action.operator] = action.destination
        self._open += moves.values()

    def check(self, view: ClusterView) -> tuple[Outcome, ...]:
        """The expectations that fell due with this view."""
        due = [one for one in self._open if self._is_due(one, view)]
        self._open = [one for one in self._open if one not in due]
        found = tuple(self._outcome(one.expected, view) for one in due)
        self.outcomes += found
        for outcome in found:
            self._remember(outcome)
        self._forget(view.time_s)
        return found

    def unhelpful(self, host: str, utilisation: float) -> bool:
        """Whether relieving this host in this situation has already failed to help."""
        failed = self._failed.get(host)
        return failed is not None and abs(utilisation - failed.expected.before) <= SIMILAR

    def _is_due(self, one: _Open, view: ClusterView) -> bool:
        if one.due_s is None:
            done = all(view.host_of.get(op) == host for op, host in one.destinations.items())
            if done:
                one.due_s = view.time_s + one.expected.within_s
        if view.time_s >= one.given_up_s:
            return True
        settled = one.due_s is not None and view.time_s >= one.due_s
        draining = one.expected.quantity == "utilisation" and (
            _measure(one.expected, view) >= SATURATED > one.expected.after
        )
        return settled and not draining

    def _outcome(self, expected: ExpectedEffect, view: ClusterView) -> Outcome:
        measured = _measure(expected, view)
        return Outcome(time_s=view.time_s, expected=expected, measured=measured)

    def _remember(self, outcome: Outcome) -> None:
        expected = outcome.expected
        if expected.quantity != "utilisation":
            return
        if outcome.helped:
            self._failed.pop(expected.subject, None)
        else:
            self._failed[expected.subject] = outcome

    def _forget(self, now_s: float) -> None:
        """A failure is an argument for a while: the cluster around it changes."""
        self._failed = {
            host: failed
            for host, failed in self._failed.items()
            if now_s < failed.time_s + PATIENCE * failed.expected.within_s
        }


def _measure(expected: ExpectedEffect, view: ClusterView) -> float:
    if expected.quantity == "hosts":
        return float(len(view.running))
    if expected.quantity == "utilisation" and expected.subject in {h.name for h in view.hosts}:
        return view.host(expected.subject).utilisation
    return expected.after
