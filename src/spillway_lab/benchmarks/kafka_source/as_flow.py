"""The windowed query as a flow has it: there the reader may compute it in parts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.hosts.spark.files import Folder
from spillway.journal.entries import Entry
from spillway_lab.benchmarks.kafka_source.asked import (
    DELAY,
    Asked,
    OnBatch,
    Place,
    manager_of,
    options_of,
)

SQL = (
    "SELECT window(at, '10 seconds') AS period, max(price) AS highest, count(*) AS bids"
    " FROM bids GROUP BY window(at, '10 seconds')"
)
_COLUMNS = {"price": "DOUBLE", "at": "TIMESTAMP"}


class _Listener:
    def __init__(self, on_batch: OnBatch) -> None:
        self._on_batch = on_batch

    def entry(self, entry: Entry) -> None:
        pass

    def batch(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None:
        self._on_batch(progress)


@contextmanager
def as_flow(
    spark: SparkSession, asked: Asked, place: Place, folder: Path, on_batch: OnBatch
) -> Iterator[None]:
    """Runs meanwhile."""
    application = Application(_flow(asked, place), spark, Folder(root=folder))
    application.listeners.append(_Listener(on_batch))
    application.start()
    try:
        yield
    finally:
        application.stop()


def _flow(asked: Asked, place: Place) -> Flow:
    law, parameters = manager_of(asked)
    stream = {
        "source": "kafka",
        "options": options_of(asked, place),
        "columns": _COLUMNS,
        "event_time": "at",
        "watermark": "5s",
    }
    return Flow.model_validate(
        {
            "streams": {"bids": stream},
            "classes": {"default": {"delay": DELAY, "manager": {"law": law, **parameters}}},
            "queries": {"per_window": {"sql": SQL, "mode": "update", "sink": {"type": "noop"}}},
        }
    )
