"""What Spark says of every finished micro-batch, read from the raw progress JSON.

PySpark's own listener turns each event into Python objects field by field over py4j: 56 ms of
driver CPU a batch, and it lags behind the next batch's planning. One call for the JSON text costs
2 ms. Events can arrive after a query has stopped, so they are keyed by run.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession


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
        query=value["name"] or "",
        run_id=value["runId"],
        batch_id=value["batchId"],
        started_s=datetime.fromisoformat(value["timestamp"]).timestamp(),
        duration_s=phases_s.get("triggerExecution", 0.0),
        input_rows=value["numInputRows"],
        phases_s=phases_s,
        sources=tuple(value["sources"]),
    )
