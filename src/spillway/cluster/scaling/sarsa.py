"""Reinforcement learning: a lookup table per host that learns its own thresholds."""

from dataclasses import dataclass

from spillway.cluster.scaling.grace import Grace
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wish, Wishes
from spillway.cluster.scaling.sarsa_table import (
    Choice,
    Learning,
    SarsaTable,
    initial_values,
    state_of,
    utilisation_reward,
)
from spillway.cluster.views import ClusterView, HostView


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """The decision whose outcome is still to be learnt."""

    state: int
    choice: Choice
    utilisation: float


class Sarsa:
    """Sarsa(0) over utilisation (FUGU, section IV-C).

    Each host has its own table, made from the thresholds when the host appears and forgotten when
    it goes. The action of highest expected reward is taken, without exploration. No action is
    learnt from at the next measurement, a scaling decision when the grace period is over, a
    decision that could not be carried out at once and with a penalty.
    """

    def __init__(self, settings: ScalingSettings, learning: Learning | None = None) -> None:
        self._settings = settings
        self._learning = learning or Learning()
        self._grace = Grace(settings.grace_s)
        self._tables: dict[str, SarsaTable] = {}
        self._taken: dict[str, Taken] = {}

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        self._grace.observe(view)
        self._forget_released(view)
        found = (self._judge(host, view.time_s, host.name in refused) for host in view.running)
        return Wishes(wishes=tuple(wish for wish in found if wish is not None))

    def table(self, host: str) -> SarsaTable:
        """The host's table; made from the thresholds when the host is new."""
        if host not in self._tables:
            first = initial_values(self._settings.lower, self._settings.upper)
            self._tables[host] = SarsaTable(first, self._learning)
        return self._tables[host]

    def _judge(self, host: HostView, now_s: float, refused: bool) -> Wish | None:
        if refused:
            self._grace.end(host.name)
        if self._grace.holds(host.name, now_s):
            return None
        table, state = self.table(host.name), state_of(host.utilisation)
        choice = table.best(state)
        if host.name in self._taken:
            self._learn(table, self._taken[host.name], host, table.value(state, choice), refused)
        self._taken[host.name] = Taken(state=state, choice=choice, utilisation=host.utilisation)
        if choice is Choice.NO_ACTION:
            return None
        self._grace.start(host.name, now_s)
        return self._wish(host, choice)

    def _learn(
        self, table: SarsaTable, taken: Taken, host: HostView, next_value: float, refused: bool
    ) -> None:
        learning = self._learning
        wrong = taken.choice is Choice.SCALE_IN or learning.punish_scale_out
        reward = (
            learning.penalty
            if refused and wrong
            else utilisation_reward(taken.utilisation, host.utilisation, self._settings.target)
        )
        table.learn(taken.state, taken.choice, reward, next_value)

    def _wish(self, host: HostView, choice: Choice) -> Wish:
        reason = f"{choice.name.lower().replace('_', ' ')} has the highest expected reward at"
        reason = f"{reason} utilisation {host.utilisation:.2f}"
        if choice is Choice.SCALE_IN:
            return Release(host=host.name, reason=reason)
        return Relieve(host=host.name, to_utilisation=self._settings.target, reason=reason)

    def _forget_released(self, view: ClusterView) -> None:
        alive = {host.name for host in view.hosts}
        self._tables = {name: table for name, table in self._tables.items() if name in alive}
        self._taken = {name: taken for name, taken in self._taken.items() if name in alive}
