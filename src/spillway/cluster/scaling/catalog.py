"""Every scaling policy by the name that a flow file gives it."""

from collections.abc import Callable, Mapping

from spillway.cluster.scaling.control import Control
from spillway.cluster.scaling.global_thresholds import GlobalThresholds
from spillway.cluster.scaling.latency_sarsa import LatencySarsa
from spillway.cluster.scaling.local_thresholds import LocalThresholds
from spillway.cluster.scaling.policy import ScalingPolicy, ScalingSettings
from spillway.cluster.scaling.sarsa import Sarsa
from spillway.cluster.scaling.true_rate import TrueRate

# Each is made from its settings and the shortest delay target there is.
POLICIES: Mapping[str, Callable[[ScalingSettings, float], ScalingPolicy]] = {
    "true-rate": lambda settings, _: TrueRate(settings),
    "global-thresholds": lambda settings, _: GlobalThresholds(settings),
    "local-thresholds": lambda settings, _: LocalThresholds(settings),
    "sarsa": lambda settings, _: Sarsa(settings),
    "latency-sarsa": lambda settings, delay_s: LatencySarsa(settings, delay_target_s=delay_s),
    "control": lambda settings, _: Control(settings),
}
