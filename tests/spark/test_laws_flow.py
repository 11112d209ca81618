"""The papers' laws in flows on Spark: they decide at the gates, with the settings of the flow.

A tuple costs a millisecond of waiting, so that the load is too high on every machine. Whether the
laws hold their targets is measured by `spillway bench laws`.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.hosts.spark.files import Folder, audits
from spillway.journal.files import read_journal
from spillway.model import Decided

pytestmark = pytest.mark.spark

WINDOWED = (
    "SELECT window(event_time, '10 seconds') AS period, key, count(*) AS n FROM {stream}"
    " WHERE reflect('java.lang.Thread', 'sleep', 1L) IS NOT NULL"
    " GROUP BY window(event_time, '10 seconds'), key"
)


def flow_of(managers: dict[str, object]) -> Flow:
    return Flow.model_validate(
        {
            "streams": {
                f"{name}_events": {
                    "source": "synthetic",
                    "options": {"rate": 12_000, "first_batch": 200, "seed": place},
                    "event_time": "event_time",
                }
                for place, name in enumerate(managers)
            },
            "classes": {
                name: {"delay": "2s", "manager": manager} for name, manager in managers.items()
            },
            "queries": {
                name: {
                    "class": name,
                    "mode": "update",
                    "sink": {"type": "noop"},
                    "sql": WINDOWED.format(stream=f"{name}_events"),
                }
                for name in managers
            },
        }
    )


def _batches(application: Application, name: str) -> Sequence[DeliveredBatch]:
    return [b for b in list(application.batches) if b.gate == f"{name}/{name}_events"]


def _shed(batches: Sequence[DeliveredBatch]) -> int:
    return sum(b.offered_tuples - b.kept_tuples for b in batches)


def _settled(application: Application, name: str) -> bool:
    """Decisions of its law in a row, not only the ones by which everything is admitted."""
    return len([b for b in _batches(application, name) if b.offered_tuples > b.kept_tuples]) >= 8


@pytest.mark.parametrize(
    "managers",
    [
        {"one": {"law": "ctrl", "headroom": 0.9, "poles": [0.6, 0.6]}, "two": "dissp"},
        {"one": "seamless", "two": {"law": "aloma", "refresh_periods": 30}},
    ],
    ids=["ctrl and dissp", "seamless and aloma"],
)
def test_laws_decide_at_their_gates_and_the_journal_has_every_decision(
    spark: SparkSession, tmp_path: Path, managers: dict[str, object]
) -> None:
    application = Application(flow_of(managers), spark, Folder(root=tmp_path))
    application.start()
    deadline_s = time.monotonic() + 300.0  # a cold JVM is given time before anything has to go
    while not all(_settled(application, name) for name in managers):
        assert time.monotonic() < deadline_s, "nobody sheds, or nobody decides"
        application.supervise()
        time.sleep(0.5)
    application.stop()
    entries = list(read_journal(tmp_path / "journal.jsonl"))
    decided = [entry for entry in entries if isinstance(entry, Decided)]
    for name in managers:
        own = [d for d in decided if d.measurement.query == name]
        assert len(own) >= 5
        assert len({d.decision.reason for d in own}) > 2  # real reasons, not one for all
        times_s = [d.measurement.time_s for d in own]
        assert times_s == sorted(times_s)
        assert sum(d.measurement.completed_tuples for d in own) > 0
        assert _shed(_batches(application, name)) > 0
        [audit] = audits(tmp_path / "ledgers" / f"{name}.{name}_events.jsonl", None)
        assert audit.exact
        completed = sum(d.measurement.completed_tuples for d in own)
        assert completed <= audit.totals.admitted
