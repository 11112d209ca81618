"""Reinforcement learning: a lookup table per host that learns its own thresholds."""

from dataclasses import dataclass

from spillway.cluster.scaling.memory import Grace, Recent
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wish, Wishes
from spillway.cluster.scaling.sarsa_table import (
    Choice,
    Learning,
    SarsaTable,
    initial_values,
    state_of,
    utilisation_reward,
)
from spillway.cluster.views import ClusterView


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """A host when it is judged: what the table is asked with and the reward is made of."""

    utilisation: float
    delay_s: float = 0.0  # mean over the queries that the host takes part in


class Sarsa:
    """Sarsa(0) over utilisation (FUGU, section IV-C).

    Each host has its own table, made from the thresholds when the host appears and forgotten when
    it goes. The action of highest expected reward is taken, without exploration. No action is
    learnt from at the next measurement, a scaling decision when the grace period is over, a
    decision that could not be carried out at once and with a penalty. Utilisation is the mean of
    the last n measurements, with the n of the threshold policies.
    """

    def __init__(self, settings: ScalingSettings, learning: Learning | None = None) -> None:
        self._settings = settings
        self._learning = learning or Learning()
        self._grace = Grace(settings.grace_s)
        self._recent = Recent(settings.consecutive)
        self._tables: dict[str, SarsaTable] = {}
        self._taken: dict[str, tuple[Situation, Choice]] = {}

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        self._grace.observe(view)
        self._recent.observe(view)
        self._forget_released(view)
        found = []
        for name, situation in self._situations(view).items():
            if name in refused:
                self._grace.end(name)
            if not self._grace.holds(name, view.time_s):
                found.append(self._judge(name, situation, view.time_s, name in refused))
        return Wishes(wishes=tuple(wish for wish in found if wish is not None))

    def table(self, host: str) -> SarsaTable:
        """The host's table; made from the thresholds when the host is new."""
        if host not in self._tables:
            self._tables[host] = self._new_table()
        return self._tables[host]

    # --- what a latency-aware variant sees differently --------------------------------------

    def _situations(self, view: ClusterView) -> dict[str, Situation]:
        return {
            host.name: Situation(utilisation=self._recent.mean(host.name)) for host in view.running
        }

    def _new_table(self) -> SarsaTable:
        first = initial_values(self._settings.lower, self._settings.upper)
        return SarsaTable(first, self._learning)

    def _state(self, situation: Situation) -> int:
        return state_of(situation.utilisation)

    def _reward(self, before: Situation, after: Situation) -> float:
        return utilisation_reward(before.utilisation, after.utilisation, self._settings.target)

    # --- the same for all -------------------------------------------------------------------

    def _judge(self, host: str, now: Situation, time_s: float, refused: bool) -> Wish | None:
        table, state = self.table(host), self._state(now)
        choice = table.best(state)
        if host in self._taken:
            before, taken = self._taken[host]
            reward = self._reward(before, now)
            if refused and (taken is Choice.SCALE_IN or self._learning.punish_scale_out):
                reward = self._learning.penalty
            table.learn(self._state(before), taken, reward, table.future(state))
        self._taken[host] = (now, choice)
        if choice is Choice.NO_ACTION:
            return None
        self._grace.start(host, time_s)
        return self._wish(host, now, choice)

    def _wish(self, host: str, now: Situation, choice: Choice) -> Wish:
        action = choice.name.lower().replace("_", " ")
        reason = f"{action} has the highest expected reward at utilisation {now.utilisation:.2f}"
        if choice is Choice.SCALE_IN:
            return Release(host=host, reason=reason)
        return Relieve(host=host, to_utilisation=self._settings.target, reason=reason)

    def _forget_released(self, view: ClusterView) -> None:
        alive = {host.name for host in view.hosts}
        self._tables = {name: table for name, table in self._tables.items() if name in alive}
        self._taken = {name: taken for name, taken in self._taken.items() if name in alive}
