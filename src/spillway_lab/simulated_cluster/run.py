"""One scaler on one workload, measured as the paper measures."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.cluster.actions import ClusterAction, Shed
from spillway.cluster.scaling.expectations import Outcome
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.views import ClusterView
from spillway_lab.simulated_cluster.cluster import ClusterSettings, SimCluster
from spillway_lab.simulated_cluster.moves import MoveProtocol
from spillway_lab.simulated_cluster.workload import ClusterWorkload

MEASURE_S = 5.0  # 720 points in an hour; the paper has about 700 in at least an hour

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ScalingRun:
    """Points of measurement, in order; a scaling decision is one plan, whatever it contains."""

    time_s: Floats
    least: Floats  # utilisation of the idlest host
    mean: Floats
    most: Floats
    hosts: Floats
    delay_s: Floats  # averaged over the queries
    shed_tuples: Floats
    decided_s: Floats  # when there was a scaling decision
    moves: int
    host_hours: float
    outcomes: tuple[Outcome, ...]

    def delay_percentile_s(self, percent: float) -> float:
        return float(np.nanpercentile(self.delay_s, percent))

    @property
    def helped_fraction(self) -> float:
        """Share of the checked expectations on hosts' utilisation that came true."""
        checked = [o for o in self.outcomes if o.expected.quantity == "utilisation"]
        return sum(o.helped for o in checked) / len(checked) if checked else 1.0

    def summary(self) -> dict[str, float]:
        return {
            "utilisation_min": float(self.least.mean()),
            "utilisation_mean": float(self.mean.mean()),
            "utilisation_max": float(self.most.mean()),
            "delay_p10_s": self.delay_percentile_s(10),
            "delay_p50_s": self.delay_percentile_s(50),
            "delay_p90_s": self.delay_percentile_s(90),
            "decisions": float(len(self.decided_s)),
            "moves": float(self.moves),
            "host_hours": self.host_hours,
            "shed_tuples": float(self.shed_tuples.sum()),
            "helped_fraction": self.helped_fraction,
        }


def run_scaling(
    workload: ClusterWorkload,
    scaler: Scaler,
    *,
    settings: ClusterSettings | None = None,
    protocol: MoveProtocol | None = None,
) -> ScalingRun:
    cluster = SimCluster(workload, settings, protocol)
    points: list[tuple[float, ...]] = []
    decided_s: list[float] = []
    while not cluster.done:
        cluster.advance(MEASURE_S)
        view = cluster.observe()
        points.append(_point(view))
        actions = scaler.tick(view)
        cluster.actuate(actions)
        if _rescales(actions):
            decided_s.append(view.time_s)
    columns = np.array(points).T
    return ScalingRun(
        time_s=columns[0],
        least=columns[1],
        mean=columns[2],
        most=columns[3],
        hosts=columns[4],
        delay_s=columns[5],
        shed_tuples=columns[6],
        decided_s=np.array(decided_s),
        moves=cluster.moves,
        host_hours=cluster.host_seconds / 3600.0,
        outcomes=tuple(scaler.expectations.outcomes),
    )


def _rescales(actions: tuple[ClusterAction, ...]) -> bool:
    return any(not isinstance(action, Shed) for action in actions)


def _point(view: ClusterView) -> tuple[float, ...]:
    used = [host.utilisation for host in view.running]
    delays = [query.delay_s for query in view.queries if query.delay_s is not None]
    shed = sum(q.offered_rate_per_s * (1.0 - q.keep_fraction) for q in view.queries)
    return (
        view.time_s,
        min(used),
        sum(used) / len(used),
        max(used),
        float(len(view.hosts)),
        sum(delays) / len(delays) if delays else float("nan"),
        shed * MEASURE_S,
    )
