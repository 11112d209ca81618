"""Reinforcement learning that also looks at latency: the paper's first idea for the future."""

import numpy as np

from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa import Sarsa, Situation
from spillway.cluster.scaling.sarsa_table import (
    STATES,
    Learning,
    SarsaTable,
    initial_values,
    state_of,
    utilisation_reward,
)
from spillway.cluster.views import ClusterView

LEVELS = 3  # within the delay target, up to twice, beyond
WORST = 3.0  # delays count up to this many times the target


class LatencySarsa(Sarsa):
    """Sarsa(0) over (utilisation, delay level), rewarded for both.

        r = 1 + decrease of |target - u| / target + decrease of max(0, min(delay / y, 3) - 1)

    with y the delay target. At higher levels the table starts with a lower upper threshold
    (half way to the target, then at it) and less scale in. Rewards are centred where standing
    still settles, 1 / (1 - beta): in the paper's table every action starts below that, so
    whatever is tried first only ever gains, and the others are never tried.
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
        lower, upper, target = (
            self._settings.lower,
            self._settings.upper,
            self._settings.target,
        )
        levels = [
            initial_values(lower, upper),
            initial_values(lower / 2.0, (upper + target) / 2.0),
            initial_values(lower / 4.0, target),
        ]
        rest = 1.0 / (1.0 - self._learning.beta)
        values = np.concatenate(levels) + (rest - 0.825)
        return SarsaTable(values, self._learning, rows=STATES)

    def _state(self, situation: Situation) -> int:
        ratio = situation.delay_s / self._delay_target_s
        level = min(LEVELS - 1, int(np.ceil(max(0.0, ratio - 1.0))))
        return level * STATES + state_of(situation.utilisation)

    def _reward(self, before: Situation, after: Situation) -> float:
        settled = utilisation_reward(before.utilisation, after.utilisation, self._settings.target)
        return settled + self._lateness(before) - self._lateness(after)

    def _lateness(self, situation: Situation) -> float:
        return max(0.0, min(situation.delay_s / self._delay_target_s, WORST) - 1.0)
