"""What the benchmarks of jobs and cold starts expect, count and complain about; no Spark here."""

import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from spillway.clock import ManualClock
from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.testing import ToyLog, ToySpark, toy_source
from spillway_lab.benchmarks import cold_start
from spillway_lab.benchmarks.cold_start_run import RATE_PER_S, Batch, read_lines
from spillway_lab.benchmarks.jobs.benchmark import NAMES, failures
from spillway_lab.benchmarks.jobs.job import Expected, judge
from spillway_lab.benchmarks.jobs.records import KEYS, Records
from spillway_lab.benchmarks.jobs.side import Taken
from spillway_lab.benchmarks.jobs.windows import windows


@pytest.mark.parametrize("grows_at_s", [None, 3.0])
def test_every_record_is_at_one_place(grows_at_s: float | None) -> None:
    """As they are produced: in order of their ids, record i to partition i modulo how many."""
    records = Records(seconds=10.0, steps=((0.0, 7.0), (5.0, 31.0)), grows_at_s=grows_at_s)
    at: dict[int, list[int]] = {}
    for number in range(records.count):
        grown = grows_at_s is not None and number >= records.grown_at
        at.setdefault(number % (4 if grown else 2), []).append(number)
    for partition, ids in at.items():
        assert records.ids_of(partition, 0, len(ids)).tolist() == ids
    assert records.count == 5 * 7 + 5 * 31


def test_a_record_is_due_when_the_profile_says() -> None:
    records = Records(seconds=10.0, steps=((0.0, 10.0), (5.0, 100.0)))
    assert records.due_us(np.array([0, 20, 50, 150])).tolist() == [0, 2e6, 5e6, 6e6]
    assert [records.due(age_s) for age_s in (2.0, 6.0, 60.0)] == [20, 150, 550]


def test_sliding_windows_count_a_record_once_for_each() -> None:
    records = Records.even(10.0, 40.0)
    found = windows([records], 1_000_000_000, slide_s=1, final=False)
    assert sum(found.rows.values()) == 5 * records.count
    tumbling = windows([records], 1_000_000_000)
    assert tumbling.until is not None
    assert max(start for start, _ in tumbling.rows) <= tumbling.until
    assert set(tumbling.rows.values()) == {10 * 5 // KEYS}


def test_missing_unexpected_differing_and_doubled_results_are_told_apart() -> None:
    expected = Expected(rows={(1, 0): 5, (2, 0): 5, (3, 0): 5}, until=5)
    found = [(1, 0, 5), (2, 0, 4), (4, 0, 1), (1, 0, 5), (9, 0, 9)]
    judged = judge(found, expected)
    assert judged.wrong == 3  # 2 differs, 3 is missing, 4 is unexpected; 9 is not judged
    assert judged.doubled == 1


@pytest.mark.parametrize("kept_s", [1e-6, 1e-3])
def test_what_a_gate_took_is_counted_from_its_offsets(kept_s: float) -> None:
    clock = ManualClock(1000.0)
    with toy_source(ToyLog(rate_per_s=1000.0, partitions=2)):
        spark = ToySpark.over(ToyLog(), clock, topic="t", startingOffsets="earliest", delay="2s")
        spark.kept_s = kept_s
        spark.batches(20)
    taken = Taken(records={"t": Records.even(2000.0, 1e4)}, begun_s=1000.0)
    for number, (before, after) in enumerate(pairwise(spark.logged)):
        taken.add(progress(number, 1e6, startOffset=json.dumps(before), endOffset=after))
    totals = decode(spark.logged[-1]).totals
    assert (taken.offered, taken.shed) == (totals.admitted + totals.shed, totals.shed)
    assert sum(delays_s.size for delays_s in taken.delays_s) == totals.admitted
    assert (totals.shed > 0) == (kept_s > 1e-5)


def test_what_sparks_own_source_took_is_counted_from_its_offsets() -> None:
    taken = Taken(records={"t": Records.even(10.0, 100.0)}, begun_s=1000.0)
    taken.add(progress(0, 1002.0, startOffset=None, endOffset={"t": {"0": 10, "1": 10}}))
    end = {"t": {"0": 15, "1": 10, "2": 0}}
    taken.add(progress(1, 1003.0, startOffset={"t": {"0": 10, "1": 10}}, endOffset=end))
    taken.add(progress(2, 1004.0, startOffset=end, endOffset=end))
    assert (taken.offered, taken.shed) == (25, 0)
    assert taken.delays_s[0].max() == 2.0  # record 0


def progress(number: int, ended_s: float, **source: object) -> BatchProgress:
    return BatchProgress(
        query="q",
        run_id="r",
        batch_id=number,
        started_s=ended_s,
        duration_s=0.0,
        input_rows=0,
        phases_s={},
        sources=(source,),
    )


def row(**figures: object) -> dict[str, object]:
    return {"offered": 100, "shed": 0, "wrong": 0, "doubled": 0, "unread": 0} | figures


def test_what_is_shed_counts_where_plain_spark_keeps_up() -> None:
    late = row(unread=10)
    assert failures({"a": row(shed=5, plain=row())}) == ("a: 5 of 100 shed, plain Spark keeps up",)
    assert failures({"a": row(shed=5, plain=late), "b": row(shed=5)}) == ()
    assert len(failures({"a": row(error="no"), "b": row(doubled=1)})) == 2
    assert len(failures({"a": row(wrong=1, plain=row())})) == 1


def test_there_are_fourteen_jobs_at_least() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 14


def batch(start_s: float, stop_s: float, ended_s: float, shed: int = 0) -> Batch:
    start, stop = round(start_s * RATE_PER_S), round(stop_s * RATE_PER_S)
    return Batch(start=start, stop=stop, shed=shed, ended_s=ended_s)


def test_a_start_is_late_until_its_last_late_batch() -> None:
    batches = [batch(0.0, 0.1, 5.0, shed=10), batch(0.1, 5.0, 6.0), batch(5.0, 6.0, 7.0)]
    found = cold_start.figures(batches, (0.0, 8.0), 0.0)
    assert found["seconds_above_target"] == 6.0
    assert found["tuples_above_target"] == round(5.0 * RATE_PER_S) - 10
    assert (found["shed"], found["first_batch_s"], found["within_from_batch"]) == (10, 5.0, 3)


def test_a_life_in_which_nothing_comes_out_is_late_all_along() -> None:
    found = cold_start.figures([], (0.0, 20.0), 0.0)
    assert found["seconds_above_target"] == 20.0
    assert found["within_from_batch"] is None
    stuck = cold_start.figures([batch(0.0, 1.0, 1.2)], (0.0, 20.0), 0.0)
    assert stuck["seconds_above_target"] == pytest.approx(18.8)
    assert stuck["within_from_batch"] is None


def test_a_line_that_a_kill_has_torn_is_passed_over() -> None:
    lines = ['{"query_s": 7.0}\n', json.dumps(asdict(batch(0.0, 1.0, 9.0))) + "\n", '{"start": 5']
    started_s, batches = read_lines(lines)
    assert started_s == 7.0
    assert [b.ended_s for b in batches] == [9.0]
