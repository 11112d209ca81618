"""What Spark says of every finished micro-batch, and the delays that follow from it.

PySpark's own listener turns each event into Python objects field by field over py4j: 56 ms of
driver CPU a batch, and it lags behind the next batch's planning. One call for the JSON text costs
2 ms. Events can arrive after a query has stopped, so they are keyed by run.

Spark says when a batch ended, the gate's offset says when the batch's kept tuples arrived; neither
side can make a delay look better than it is.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from spillway.gate.delays import delays_of, excess, quantile_s
from spillway.gate.offsets import Offset, decode, is_sentinel
from spillway.model import Delays
from spillway.sinks.catalog import RESULTS


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchProgress:
    """One finished micro-batch as Spark saw it."""

    query: str
    run_id: str
    batch_id: int
    started_s: float  # epoch
    duration_s: float  # planning, execution and commit
    input_rows: int  # wrong with several actions or self-unions: the gate's counts are the truth
    phases_s: dict[str, float]
    sources: tuple[dict[str, Any], ...]
    state_bytes: int = 0  # of the query's state in memory
    newest_us: int | None = None  # event time in this batch; None: no tuple, or no event time
    watermark_us: int | None = None  # that this batch ran under
    results: int | None = None  # rows that went to the sink, where they are counted

    @property
    def ended_s(self) -> float:
        return self.started_s + self.duration_s


OnProgress = Callable[[BatchProgress], None]
OnEnd = Callable[[str, str | None], None]  # run id, error


class ProgressMonitor:
    """Calls `on_progress` for every batch and `on_end` for every query that ends."""

    def __init__(
        self, spark: SparkSession, on_progress: OnProgress, on_end: OnEnd | None = None
    ) -> None:
        from py4j.java_gateway import java_import
        from pyspark.java_gateway import ensure_callback_server_started

        gateway: Any = spark.sparkContext._gateway
        java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        self._streams: Any = spark.streams._jsqm
        listener = _RawListener(on_progress, on_end)
        self._listener = gateway.jvm.PythonStreamingQueryListenerWrapper(listener)
        self._streams.addListener(self._listener)

    def close(self) -> None:
        self._streams.removeListener(self._listener)


class _RawListener:
    """Implements Spark's Java interface; runs in py4j's callback thread, so it stays short."""

    def __init__(self, on_progress: OnProgress, on_end: OnEnd | None) -> None:
        self._on_progress = on_progress
        self._on_end = on_end

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._on_progress(parse_progress(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if self._on_end is not None:
            error = event.exception()
            self._on_end(str(event.runId()), error.get() if error.isDefined() else None)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def parse_progress(text: str) -> BatchProgress:
    value = json.loads(text)
    phases_s = {phase: ms / 1e3 for phase, ms in value["durationMs"].items()}
    return BatchProgress(
        query=value.get("name") or "",
        run_id=value["runId"],
        batch_id=value["batchId"],
        started_s=datetime.fromisoformat(value["timestamp"]).timestamp(),
        duration_s=phases_s.get("triggerExecution", 0.0),
        input_rows=value["numInputRows"],
        phases_s=phases_s,
        sources=tuple(value["sources"]),
        state_bytes=sum(o.get("memoryUsedBytes", 0) for o in value.get("stateOperators", ())),
        newest_us=_event_us(value, "max"),
        watermark_us=_event_us(value, "watermark"),
        results=value.get("observedMetrics", {}).get(RESULTS, {}).get(RESULTS),
    )


def _event_us(value: dict[str, Any], name: str) -> int | None:
    """Spark says event times in whole milliseconds, cut off: it may have been one later."""
    found = value.get("eventTime", {}).get(name)
    if found is None:
        return None
    return round(datetime.fromisoformat(found).timestamp() * 1e3) * 1000


@dataclass(frozen=True, kw_only=True)
class DeliveredBatch:
    """One batch of one gate. Ages run linearly between the arrivals that the offset names."""

    gate: str
    seq: int
    ended_s: float
    duration_s: float
    offered_tuples: int
    kept_tuples: int
    planned_s: float = 0.0  # epoch; the trigger may have waited for tuples or a turn before that
    reason: str = ""  # of what was kept, as the gate gave it
    results: int | None = None  # of the whole batch, where they are counted
    mean_delay_s: float
    quantile_delays_s: npt.NDArray[np.float64]  # at DELAY_SHARES: the oldest tuple first

    @property
    def delays(self) -> Delays:
        quantiles_s = tuple(map(float, self.quantile_delays_s))
        return Delays(tuples=self.kept_tuples, mean_s=self.mean_delay_s, quantiles_s=quantiles_s)

    def above(self, bound_s: float) -> tuple[float, float]:
        """Tuples above a delay, and the sum of what they exceed it by."""
        return excess(self.delays, bound_s)


def delivered(progress: BatchProgress) -> list[DeliveredBatch]:
    """What a progress event says of our gates; sources that are not ours are passed over."""
    found = []
    for source in progress.sources:
        offset = _offset(source.get("endOffset"))
        before = _offset(source.get("startOffset"))
        if offset is None or offset.arrived is None:
            continue
        if before is not None and before.seq == offset.seq:
            continue  # this gate had no part in the batch
        found.append(_batch(offset, progress))
    return found


def end_offsets(progress: BatchProgress) -> list[Offset]:
    """Where our gates stand after a batch."""
    found = (_offset(source.get("endOffset")) for source in progress.sources)
    return [offset for offset in found if offset is not None]


def unread_tuples(progress: BatchProgress) -> int:
    """What waited at our gates beyond the batch when it was planned."""
    unread = 0
    for source in progress.sources:
        offset, latest = _offset(source.get("endOffset")), source.get("latestOffset")
        if isinstance(latest, str):
            latest = json.loads(latest)
        if offset is not None and isinstance(latest, dict):
            reached = {str(s.partition): s.stop for s in offset.stretches}
            ends = latest.get("partitions", {}).items()
            unread += sum(max(0, end - reached.get(name, 0)) for name, end in ends)
    return unread


def _batch(offset: Offset, progress: BatchProgress) -> DeliveredBatch:
    assert offset.arrived is not None
    kept = offset.kept_tuples()
    delays = delays_of(offset.arrived, kept, offset.planned_us, progress.ended_s)
    return DeliveredBatch(
        gate=offset.gate,
        seq=offset.seq,
        ended_s=progress.ended_s,
        duration_s=progress.duration_s,
        offered_tuples=offset.offered_tuples,
        kept_tuples=kept,
        planned_s=offset.planned_us / 1e6,
        reason=offset.rule.reason,
        results=progress.results,
        mean_delay_s=delays.mean_s,
        quantile_delays_s=np.array(delays.quantiles_s),
    )


def _offset(value: Any) -> Offset | None:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, dict) or "planned_us" not in value or is_sentinel(value):
        return None
    return decode(value)


@dataclass(frozen=True, kw_only=True)
class DelaySummary:
    """Delays over many batches, and how far they were above a bound."""

    batches: int
    offered_tuples: int
    kept_tuples: int
    mean_s: float
    p95_s: float
    p99_s: float
    delayed_tuples: float
    accumulated_violation_s: float
    mean_batch_s: float


def summarise(batches: Iterable[DeliveredBatch], bound_s: float) -> DelaySummary | None:
    """None when nothing was delivered."""
    kept = [batch for batch in batches if batch.kept_tuples > 0]
    if not kept:
        return None
    delays = [batch.delays for batch in kept]
    tuples = sum(batch.kept_tuples for batch in kept)
    late = [excess(found, bound_s) for found in delays]
    return DelaySummary(
        batches=len(kept),
        offered_tuples=sum(batch.offered_tuples for batch in kept),
        kept_tuples=tuples,
        mean_s=sum(found.mean_s * found.tuples for found in delays) / tuples,
        p95_s=quantile_s(delays, 0.95),
        p99_s=quantile_s(delays, 0.99),
        delayed_tuples=sum(count for count, _ in late),
        accumulated_violation_s=sum(excess_s for _, excess_s in late),
        mean_batch_s=float(np.mean([batch.duration_s for batch in kept])),
    )
