"""What the cluster's brain gets to see of the simulated cluster: totals made into views."""

from functools import cache

import numpy as np

from spillway.cluster.views import OperatorView, QueryView, Resources
from spillway_lab.simulated_cluster.fluid import Floats, Totals
from spillway_lab.simulated_cluster.workload import AGGREGATE, STAGES, TUPLE_MB, ClusterWorkload

OPERATOR_MB = 20.0


def operator_views(
    totals: Totals, workload: ClusterWorkload, window_tuples: Floats, queue: Floats
) -> list[list[OperatorView]]:
    """By stage and query. The true rate is what was processed per second of CPU time spent."""
    seconds = max(totals.seconds, 1e-9)
    cpu = (totals.busy_s / seconds).tolist()
    network = (totals.processed * (TUPLE_MB / seconds)).tolist()
    idle = totals.busy_s <= 0.0
    measured = totals.processed / np.where(idle, 1.0, totals.busy_s)
    true_rate = np.where(idle, 1.0 / workload.cost_s[:, None], measured).tolist()
    selectivity = (totals.produced / np.maximum(totals.processed, 1e-12)).tolist()
    state_mb = np.zeros_like(totals.busy_s)
    state_mb[AGGREGATE] = window_tuples * TUPLE_MB
    state = state_mb.tolist()
    queued = queue.tolist()

    def view(stage: int, query: int) -> OperatorView:
        return OperatorView(
            name=operator_name(stage, query),
            queries=(f"q{query}",),
            use=Resources(
                cpu_cores=cpu[stage][query],
                memory_mb=OPERATOR_MB + state[stage][query],
                network_mb_per_s=network[stage][query],
            ),
            upstream=(operator_name(stage - 1, query),) if stage else (),
            state_mb=state[stage][query],
            selectivity=selectivity[stage][query],
            true_rate_per_s=true_rate[stage][query],
            queued_tuples=queued[stage][query],
        )

    return [[view(s, q) for q in range(workload.queries)] for s in range(len(STAGES))]


def query_views(totals: Totals, moving: set[int]) -> tuple[QueryView, ...]:
    seconds = max(totals.seconds, 1e-9)
    offered = (totals.offered / seconds).tolist()
    kept = (1.0 - totals.shed / np.maximum(totals.offered, 1e-12)).tolist()
    completed = totals.completed.tolist()
    delay = (totals.delay_s / np.maximum(totals.completed, 1e-12)).tolist()
    return tuple(
        QueryView(
            name=f"q{query}",
            class_name="default",
            priority=1,
            operators=tuple(operator_name(stage, query) for stage in range(len(STAGES))),
            offered_rate_per_s=offered[query],
            keep_fraction=kept[query],
            delay_s=delay[query] if completed[query] > 0.0 else None,
            migrating=query in moving,
        )
        for query in range(len(offered))
    )


@cache
def operator_name(stage: int, query: int) -> str:
    return f"q{query}.{STAGES[stage]}"


@cache
def stage_and_query(operator: str) -> tuple[int, int]:
    query, stage = operator[1:].split(".")
    return STAGES.index(stage), int(query)
