"""Reinforcement learning that looks at latency too and learns what the paper's cannot."""

from dataclasses import dataclass

import numpy as np

from spillway.cluster.scaling.policy import Release, ScalingSettings, Wishes
from spillway.cluster.scaling.sarsa import Sarsa, Situation
from spillway.cluster.scaling.sarsa_table import (
    STATES,
    Choice,
    Learning,
    SarsaTable,
    initial_values,
    state_of,
)
from spillway.cluster.views import ClusterView

LEVELS = 3  # within the delay target, up to twice, beyond
WORST = 3.0  # delays count up to this many times the target


@dataclass(frozen=True, kw_only=True, slots=True)
class Departed:
    """A release whose outcome, for those that remain, is still to be seen."""

    state: int
    due_s: float


class LatencySarsa(Sarsa):
    """Sarsa(0) over (utilisation, delay level) with three changes to the paper's.

    The paper rewards changes: standing still earns 1 wherever a host stands, its value settles at
    1 / (1 - beta), above everything in the first table, and nothing else is tried again. Here the
    reward is for where a host stands, so that standing still far from the target loses:

        r = 1 - |target - u| / target - max(0, min(delay / y, 3) - 1),    y the delay target

    The paper forgets a host's table with the host, so no release is ever learnt from. Here hosts
    share one table, and a release is judged, a grace period later, by the average host that
    remains. At higher delay levels the first table scales out earlier and in later.
    """

    def __init__(
        self,
        settings: ScalingSettings,
        learning: Learning | None = None,
        *,
        delay_target_s: float = 1.0,
    ) -> None:
        super().__init__(settings, learning)
        self._delay_target_s = delay_target_s
        self._shared = self._new_table()
        self._departed: list[Departed] = []

    def table(self, host: str) -> SarsaTable:
        return self._shared

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        self._learn_from_releases(view)
        wishes = super().decide(view, refused)
        due_s = view.time_s + self._settings.grace_s
        for wish in wishes.wishes:
            if isinstance(wish, Release):
                state = self._state(self._taken[wish.host][0])
                self._departed.append(Departed(state=state, due_s=due_s))
        return wishes

    def _learn_from_releases(self, view: ClusterView) -> None:
        due = [one for one in self._departed if one.due_s <= view.time_s]
        if not due or not view.running:
            return
        self._departed = [one for one in self._departed if one not in due]
        delays = [query.delay_s for query in view.queries if query.delay_s is not None]
        now = Situation(
            utilisation=sum(host.utilisation for host in view.running) / len(view.running),
            delay_s=sum(delays) / len(delays) if delays else 0.0,
        )
        value = self._shared.future(self._state(now))
        for one in due:
            self._shared.learn(one.state, Choice.SCALE_IN, self._standing(now), value)

    def _situations(self, view: ClusterView) -> dict[str, Situation]:
        delays = {query.name: query.delay_s for query in view.queries}
        found: dict[str, Situation] = {}
        for host in view.running:
            known = [d for d in (delays.get(name) for name in host.query_names) if d is not None]
            delay_s = sum(known) / len(known) if known else 0.0
            utilisation = self._recent.mean(host.name)
            found[host.name] = Situation(utilisation=utilisation, delay_s=delay_s)
        return found

    def _new_table(self) -> SarsaTable:
        lower, upper = self._settings.lower, self._settings.upper
        earlier = (upper + self._settings.target) / 2.0
        levels = (
            initial_values(lower, upper),
            initial_values(lower / 2.0, earlier),
            initial_values(lower / 4.0, self._settings.target),
        )
        return SarsaTable(np.concatenate(levels), self._learning)

    def _state(self, situation: Situation) -> int:
        ratio = situation.delay_s / self._delay_target_s
        level = min(LEVELS - 1, int(np.ceil(max(0.0, ratio - 1.0))))
        return level * STATES + state_of(situation.utilisation)

    def _reward(self, before: Situation, after: Situation) -> float:
        return self._standing(after)

    def _standing(self, now: Situation) -> float:
        target = self._settings.target
        late = max(0.0, min(now.delay_s / self._delay_target_s, WORST) - 1.0)
        return 1.0 - abs(target - now.utilisation) / target - late
