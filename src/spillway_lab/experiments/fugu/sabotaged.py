"""Policies that must fail: a check that they pass says nothing."""

from spillway.cluster.scaling.latency_sarsa import LatencySarsa
from spillway.cluster.scaling.policy import ScalingSettings, Wishes
from spillway.cluster.scaling.sarsa import Sarsa, Situation
from spillway.cluster.scaling.sarsa_table import Learning
from spillway.cluster.views import ClusterView


class Idle:
    """Never wants anything."""

    def __init__(self, settings: ScalingSettings, learning: Learning) -> None:
        del settings, learning

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        del view, refused
        return Wishes()


class ConstantSarsa(Sarsa):
    """Every outcome is as good as any other."""

    def _reward(self, before: Situation, after: Situation) -> float:
        return 1.0


class FlippedSarsa(Sarsa):
    """The worse the better."""

    def _reward(self, before: Situation, after: Situation) -> float:
        return 2.0 - super()._reward(before, after)


class ConstantLatencySarsa(LatencySarsa):
    def _standing(self, now: Situation) -> float:
        return 1.0


class FlippedLatencySarsa(LatencySarsa):
    def _standing(self, now: Situation) -> float:
        return -super()._standing(now)
