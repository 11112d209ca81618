"""What Prometheus scrapes."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from virtual import VirtualWatch

from spillway.gate.offsets import Totals
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.journal.entries import Event
from spillway.watch.metrics import DELAYS_S, Metrics

NAMES = {
    "spillway_rows": {"query", "class", "stream", "outcome"},
    "spillway_lost_rows": {"query", "class", "stream"},
    "spillway_malformed_rows": {"query", "class", "stream"},
    "spillway_delay_seconds": {"query", "class", "le"},
    "spillway_delay_target_seconds": {"class", "statistic"},
    "spillway_delay_current_seconds": {"class"},
    "spillway_backlog_rows": {"query", "class"},
    "spillway_backlog_age_seconds": {"query", "class"},
    "spillway_batch_duration_seconds": {"query", "class", "le"},
    "spillway_batch_cost_seconds": {"query", "class", "part"},
    "spillway_class_quota_ratio": {"class"},
    "spillway_class_priority_ratio": {"class"},
    "spillway_class_min_keep_ratio": {"class"},
    "spillway_decisions": {"query", "class"},
    "spillway_query_restarts": {"query"},
    "spillway_ledger_exact": {"query", "class"},
    "spillway_query_running": {"query", "class"},
    "spillway_controller_up": set(),
}


def families(text: bytes) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def batch(delays_s: Iterable[float], kept: int = 1000) -> DeliveredBatch:
    first, p99, p95, last = delays_s
    return DeliveredBatch(
        gate="fraud/payments",
        seq=1,
        ended_s=0.0,
        duration_s=0.3,
        offered_tuples=kept,
        kept_tuples=kept,
        mean_delay_s=(first + last) / 2,
        quantile_delays_s=np.array([first, p99, p95, last]),
    )


def progress() -> BatchProgress:
    return cast(BatchProgress, SimpleNamespace(duration_s=0.3, sources=(), input_rows=1000))


def test_names_and_labels_are_these_and_no_others(watched: VirtualWatch) -> None:
    watched.look()
    found = families(watched.metrics_text())
    assert set(found) == set(NAMES)
    for name, family in found.items():
        for sample in family.samples:
            assert set(sample.labels) <= NAMES[name], sample
            assert name in sample.name


def test_a_histogram_counts_every_tuple_once() -> None:
    metrics = Metrics()
    metrics.batch(("fraud", "gold"), progress(), [batch([4.0, 3.96, 3.8, 0.0])])
    samples = families(metrics.text())["spillway_delay_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert buckets["+Inf"] == 1000.0
    assert abs(buckets["2.0"] - 500.0) < 20.0  # delays run evenly from 0 to 4 s
    assert buckets["4.0"] == 1000.0
    values = [buckets[str(float(bound))] for bound in DELAYS_S]
    assert values == sorted(values)
    [total] = [s.value for s in samples if s.name.endswith("_sum")]
    assert total == 2000.0


def test_all_series_are_there_before_the_first_batch(watched: VirtualWatch) -> None:
    watched.look()
    rows = families(watched.metrics_text())["spillway_rows"].samples
    named = {(s.labels["query"], s.labels["outcome"]) for s in rows}
    assert ("trends", "shed") in named
    assert {s.value for s in rows} == {0.0}


def test_a_restart_of_the_driver_sets_no_count_back(watched: VirtualWatch) -> None:
    gate = ("trends", "bronze", "clicks")
    totals = Totals(offered=1000, admitted=600, shed=400, lost=7)
    watched.metrics.begin(gate, totals, malformed=2)
    watched.look()
    found = families(watched.metrics_text())
    of_trends = [s for s in found["spillway_rows"].samples if s.labels["query"] == "trends"]
    assert {s.labels["outcome"]: s.value for s in of_trends} == {"admitted": 600.0, "shed": 400.0}
    assert 7.0 in [s.value for s in found["spillway_lost_rows"].samples]
    assert 2.0 in [s.value for s in found["spillway_malformed_rows"].samples]


def test_malformed_records_are_counted_by_stream(watched: VirtualWatch) -> None:
    watched.look()
    losses = {"gate": "fraud/payments", "malformed_tuples": 3, "dropped_tuples": 0}
    watched.metrics.count([Event(time_s=1.0, kind="losses", fields=losses)])
    samples = families(watched.metrics_text())["spillway_malformed_rows"].samples
    assert {(s.labels["stream"], s.value) for s in samples if s.value} == {("payments", 3.0)}


def test_a_control_loop_that_looks_no_more_is_down(watched: VirtualWatch) -> None:
    from dataclasses import replace

    snapshot = watched.look()
    watched.metrics.show(replace(snapshot, control_looked_s=snapshot.time_s - 60.0))
    [sample] = families(watched.metrics_text())["spillway_controller_up"].samples
    assert sample.value == 0.0
