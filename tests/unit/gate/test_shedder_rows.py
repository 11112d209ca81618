"""The gate's planner, slices and rows with shedders that look at the data; no Spark needed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StructType, TimestampType

from spillway.errors import SpillwayError
from spillway.gate.offsets import decode
from spillway.gate.options import GateOptions
from spillway.gate.shedders.blocks import kept_positions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.hosts.spark.worker.rows import Rows
from spillway.hosts.spark.worker.slices import slices
from spillway.logs import catalog

LOG = {
    "source": "synthetic",
    "rate": "30000",
    "columns": "id position, key key(100, 1.1), value double(0, 1), event_time time",
    "start": "1000000",
    "startingoffsets": "earliest",
}
GATE = {
    "manager": "fixed",
    "manager.keep_fraction": "0.4",
    "heartbeat": "event_time",
    "weight": "true",
    "place": "true",
    "first_batch": "100000",
}
SHEDDERS = {
    "uniform": {"shedder": "uniform"},
    "key": {"shedder": "key", "key": "key", "epoch": "2s"},
    "utility": {"shedder": "utility", "utility": "value"},
    "windows": {"shedder": "windows", "window": "300ms"},
    "strata": {"shedder": "strata", "key": "key"},
}


class Moment:
    def __init__(self) -> None:
        self.at_s = 1_000_001.0

    def now_s(self) -> float:
        return self.at_s


def batches(options: dict[str, str], count: int = 5) -> Iterator[Any]:
    """Offsets of a run in which about a second passes before every batch."""
    clock, seconds = Moment(), iter(range(10**6))
    around = Around(clock=clock, elapsed=lambda: float(next(seconds)) * 0.01, sleep=lambda s: None)
    planner = Planner(options, GateOptions.parse(options), around=around)
    start: dict[str, Any] = {"v": 1, "seq": -1}
    for _ in range(count):
        end = planner.latest(start)
        if start != end and start["seq"] >= 0:
            planner.completed(start)
        shown = planner.shown(start, end)
        if shown is not None:
            yield shown
        start, clock.at_s = end, clock.at_s + 1.037


def rows_of(offset: Any, options: dict[str, str], parallelism: int) -> pa.Table | None:
    log = catalog.open_log({**options, **offset.pinned}, None)
    schema = StructType([*from_arrow_schema(log.columns()).fields])
    schema = schema.add("_arrival", TimestampType()).add("_weight", DoubleType())
    schema = schema.add("_place", LongType()).add("_kept_from", TimestampType())
    rows = Rows(schema, "event_time")
    parts = slices(offset, parallelism)
    found = [batch for part in parts for batch in rows.of(part, log)]
    return pa.Table.from_batches(found) if found else None


@pytest.mark.parametrize("shedder", SHEDDERS)
def test_workers_deliver_what_the_offset_says(shedder: str) -> None:
    options = {**LOG, **GATE, **SHEDDERS[shedder]}
    delivered = 0
    for offset in batches(options):
        rows = rows_of(offset, options, 1)
        if rows is None:
            assert offset.kept_tuples() == 0
            continue
        log = catalog.open_log({**options, **offset.pinned}, None)
        kept = np.concatenate([kept_positions(s, offset.rule, log) for s in offset.stretches])
        assert np.array_equal(rows["id"].to_numpy(), kept)
        assert np.array_equal(rows["_place"].to_numpy(), kept)  # one partition, all consumed
        assert len(kept) == offset.kept_tuples()
        again = rows_of(offset, options, 4)
        assert rows.equals(again.combine_chunks()) or rows.to_pylist() == again.to_pylist()
        if offset.rule.selection is None or not offset.rule.selection.no_sample:
            # A uniform batch ends inside two blocks; test_row_weights goes second by second.
            total = rows["_weight"].to_numpy().sum()
            assert total == pytest.approx(offset.offered_tuples, rel=0.005)
        delivered += len(kept)
    assert delivered > 10_000


@pytest.mark.parametrize("shedder", ["key", "utility", "strata"])
def test_on_average_the_decided_share_is_kept(shedder: str) -> None:
    chain = list(batches({**LOG, **GATE, **SHEDDERS[shedder]}, count=8))
    totals = chain[-1].totals
    assert totals.admitted / (totals.admitted + totals.shed) == pytest.approx(0.4, abs=0.03)


def test_whole_windows_are_complete_over_many_batches() -> None:
    options = {**LOG, **GATE, **SHEDDERS["windows"]}
    tables = [rows_of(offset, options, 2) for offset in batches(options, count=12)]
    rows = pa.concat_tables([table for table in tables if table is not None])
    windows = rows["event_time"].cast(pa.int64()).to_numpy() // 300_000
    found, counts = np.unique(windows, return_counts=True)
    inner = (found > found[0]) & (found < found[-1])
    assert inner.sum() > 8
    assert set(counts[inner].tolist()) <= {8999, 9000, 9001}  # 30,000 a second, 0.3 s each
    since = rows["_kept_from"].cast(pa.int64()).to_numpy() // 300_000
    stayed = set(found.tolist())
    for window, first in {*zip(windows.tolist(), since.tolist(), strict=True)}:
        assert stayed.issuperset(range(first, window + 1))
        assert first - 1 not in stayed


def test_offsets_of_a_dry_run_keep_everything_whatever_the_shedder() -> None:
    options = {**LOG, **GATE, **SHEDDERS["utility"], "dry_run": "true"}
    last = list(batches(options))[-1]
    assert last.totals.shed == 0
    assert last.rule.would_keep_ppm < 1_000_000


def test_a_column_that_the_log_does_not_have_is_named() -> None:
    options = {**LOG, **GATE, "shedder": "strata", "key": "kay"}
    with pytest.raises(SpillwayError, match="'kay': did you mean 'key'"):
        list(batches(options))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"shedder": "keys"}, "did you mean 'key'"),
        ({"shedder": "strata"}, "needs option 'key'"),
        ({"shedder": "windows", "window": "1s"}, "needs the event time"),
        ({"shedder": "utility", "utility": "value", "policy": "fresh"}, "policy 'fresh'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], named: str) -> None:
    with pytest.raises(SpillwayError, match=named):
        GateOptions.parse(options)


def test_a_decoded_offset_keeps_its_selection() -> None:
    from spillway.gate.offsets import encode

    for offset in batches({**LOG, **GATE, **SHEDDERS["windows"]}):
        assert decode(encode(offset)) == offset
