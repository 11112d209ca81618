"""One law on one curve of rates, at constant cost."""

from dataclasses import dataclass

from spillway.load import laws
from spillway.model import Target
from spillway.workloads.curves import RateCurve, arrivals_of
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.networks import make_setting
from spillway_lab.engine.run import simulate
from spillway_lab.experiments.ctrl.setting import PERIOD_S, TARGET_S
from spillway_lab.experiments.outcomes import Outcome, outcome_of

STEP_AT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class CurveSpec:
    """One law on one rate curve, constant cost."""

    law: str
    curve: RateCurve
    duration_s: float
    seed: int
    name: str = ""
    drain_s: float = 0.0  # after the last arrival, so that every tuple's delay is known

    def __str__(self) -> str:
        return f"{self.law} {self.name}"


def run_curve(spec: CurveSpec) -> Outcome:
    setting = make_setting("ctrl")
    plant = NetworkPlant(
        setting.network,
        arrivals_of(spec.curve, spec.duration_s, spec.seed),
        target=Target(delay_s=TARGET_S),
        engine=setting.engine,
        delay=setting.delay,
        seed=spec.seed,
    )
    run_s = spec.duration_s + spec.drain_s
    return outcome_of(simulate(plant, laws.make(spec.law), run_s, PERIOD_S))
