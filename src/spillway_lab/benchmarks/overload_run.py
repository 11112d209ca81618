"""One load manager under constant overload: warm up, then measure what the gate delivered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch, delivered, summarise
from spillway.load import laws
from spillway.model import Target
from spillway_lab.benchmarks.spark_runs import Bench, Shape, Source

# Laws of a control period move by steps of a per cent a second: it takes them most of a minute.
SETTLE_S, PERIOD_LAW_SETTLE_S = 15.0, 45.0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was delivered in the measured part of one run."""

    batches: list[DeliveredBatch]
    length_s: float

    @property
    def kept_tuples(self) -> int:
        return sum(batch.kept_tuples for batch in self.batches)

    @property
    def goodput_per_s(self) -> float:
        return self.kept_tuples / self.length_s if self.length_s > 0.0 else 0.0


def settle_s(law: str) -> float:
    """How long a law runs before it is measured."""
    return SETTLE_S if laws.find(law).cadence == "batch" else PERIOD_LAW_SETTLE_S


def sample(bench: Bench, source: Source, shape: Shape, spans_s: tuple[float, float]) -> Sample:
    """`spans_s`: how long to warm up, how long to measure."""
    warm_s, measured_s = spans_s
    run = bench.start(source, shape)
    run.for_batches(3)
    run.for_seconds(warm_s)
    batches = run.for_seconds(measured_s)
    run.stop()
    return Sample(
        batches=[d for batch in batches for d in delivered(batch)], length_s=span_s(batches)
    )


def row_of(samples: Sequence[Sample], target: Target) -> dict[str, Any]:
    """The figures of one load manager over all its runs."""
    seen = summarise([batch for s in samples for batch in s.batches], target.delay_s)
    length_s = sum(s.length_s for s in samples)
    if seen is None or length_s <= 0.0:
        return {"target_s": target.delay_s, "goodput_per_s": 0.0}
    return {
        "mean_delay_s": seen.mean_s,
        "p95_delay_s": seen.p95_s,
        "p99_delay_s": seen.p99_s,
        "accumulated_violation_s": seen.accumulated_violation_s,
        "loss_ratio": 1.0 - seen.kept_tuples / max(1, seen.offered_tuples),
        "goodput_per_s": seen.kept_tuples / length_s,
        "target_s": target.delay_s,
        "batches": seen.batches,
        "mean_batch_s": seen.mean_batch_s,
    }


def span_s(batches: list[BatchProgress]) -> float:
    """From the start of the first batch to the end of the last: whole batches only."""
    return batches[-1].ended_s - batches[0].started_s if batches else 0.0
