"""What each query of a fused plan costs, from batches in which they saw different rows.

A fused plan has no counter per query, but a batch's time adds up:

    duration = o + shared * kept + sum over queries of cost_k * seen_k

With masks the gate varies what each query sees, Spark says how long the batch took and the offset
says exactly who saw what, so least squares (no coefficient below zero) tells them apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.errors import SpillwayError
from spillway.gate.offsets import decode, is_sentinel
from spillway.gate.roadmap import Inflow, Part
from spillway.gate.rules import seen_tuples
from spillway.gate.split import Split
from spillway.hosts.spark.driver.progress import BatchProgress


@dataclass(frozen=True, kw_only=True)
class SeenBatch:
    """One finished batch, and what each query saw of it."""

    duration_s: float  # without the wait for tuples
    kept_tuples: int
    seen_tuples: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class QueryCosts:
    """Seconds of pipeline time: per batch, per kept tuple, per tuple that a query sees."""

    fixed_s: float
    shared_s: float
    query_s: Mapping[str, float]

    def inflow(
        self, rate_per_s: float, weights: Mapping[str, float], stream: str = "gate"
    ) -> Inflow:
        """The network that these costs describe: one gate, a shared part, a split."""
        queries = tuple(
            Part(name=name, cost_s=cost_s, weight=weights[name])
            for name, cost_s in self.query_s.items()
        )
        part = Part(name=stream, cost_s=self.shared_s, readers=queries)
        return Inflow(rate_per_s=rate_per_s, part=part)

    def split(self, weights: Mapping[str, float]) -> Split:
        """What the gate's option `split` says: its text goes there."""
        return Split(shared_cost=self.shared_s, costs=self.query_s, weights=weights)


def seen_batch(progress: BatchProgress) -> SeenBatch | None:
    """A batch of a query with one gate that has masks; None when it consumed nothing."""
    end = progress.sources[0].get("endOffset")
    if not isinstance(end, dict) or is_sentinel(end):
        return None
    offset = decode(end)
    kept = offset.kept_tuples()
    if kept == 0:
        return None
    return SeenBatch(
        duration_s=progress.duration_s - progress.phases_s.get("latestOffset", 0.0),
        kept_tuples=kept,
        seen_tuples=seen_tuples(offset.stretches, offset.rule),
    )


def fit_query_costs(batches: Sequence[SeenBatch]) -> QueryCosts:
    """Least squares over relative errors, so that long batches do not drown the short ones."""
    names = list(dict.fromkeys(name for batch in batches for name in batch.seen_tuples))
    rows = np.array(
        [[1.0, b.kept_tuples, *(b.seen_tuples.get(n, 0) for n in names)] for b in batches],
        dtype=float,
    ).reshape(len(batches), 2 + len(names))
    scales = rows.max(axis=0, initial=0.0)
    if np.linalg.matrix_rank(rows / np.where(scales > 0.0, scales, 1.0)) < rows.shape[1]:
        raise SpillwayError(
            f"{len(batches)} batches cannot tell the costs of {', '.join(names) or 'no queries'}"
            " apart: measure with batches of different size, and with each query masked in turn"
        )
    try:
        from scipy.optimize import nnls
    except ImportError as error:
        raise SpillwayError(
            "costs by query need scipy: pip install 'spillway-spark[cluster]'"
        ) from error
    durations_s = np.array([batch.duration_s for batch in batches])
    found, _ = nnls(rows / scales / durations_s[:, None], np.ones(len(batches)))
    fixed_s, shared_s, *own_s = (found / scales).tolist()
    return QueryCosts(
        fixed_s=fixed_s, shared_s=shared_s, query_s=dict(zip(names, own_s, strict=True))
    )
