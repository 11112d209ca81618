"""Shedders that look at the data, in real queries: what comes out is what the ledger says."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gates import Place, batches_done, committed_files, difference, gate, to_files, wait_until
from pyspark.sql import SparkSession

from spillway.gate.shedders.blocks import kept_positions
from spillway.gate.shedders.catalog import asked_shedder
from spillway.gate.shedders.shedder import Shedder
from spillway.logs import catalog

pytestmark = pytest.mark.spark

COLUMNS = "id position, key key(200, 1.1), value double(0, 1), event_time time"
OPTIONS = {
    "key": {"shedder": "key", "key": "key", "epoch": "3s"},
    "utility": {"shedder": "utility", "utility": "value * 2"},
    "windows": {"shedder": "windows", "window": "500ms"},
    "strata": {"shedder": "strata", "key": "key"},
}


def run(spark: SparkSession, place: Place, **options: str) -> pa.Table:
    frame = gate(
        spark,
        place,
        rate="60000",
        columns=COLUMNS,
        weight="true",
        PLACE="true",  # options ignore case
        heartbeat="event_time",
        manager="fixed",
        poll="500ms",
        **{"manager.keep_fraction": "0.4"},
        **options,
    )
    query = to_files(frame.where("NOT _heartbeat"), place)
    # A window stays or goes by a coin: a share needs many of them.
    wanted = 60 if "window" in options else 8
    wait_until(lambda: batches_done(query) >= wanted)
    query.stop()
    return pa.concat_tables([pq.read_table(path) for path in committed_files(place.sink)])


def audited(place: Place) -> np.ndarray:
    """The positions that the offsets' rules keep, found by reading the log again."""
    found = []
    for offset in place.chain():
        log: Any = catalog.open_log(
            {"source": "synthetic", "rate": "60000", "columns": COLUMNS, **offset.pinned}, None
        )
        found += [kept_positions(s, offset.rule, log) for s in offset.stretches]
    return np.sort(np.concatenate(found))


@pytest.mark.parametrize("shedder", OPTIONS)
def test_the_sink_holds_exactly_what_an_audit_of_the_log_finds(
    spark: SparkSession, tmp_path: Path, shedder: str
) -> None:
    place = Place(root=tmp_path)
    rows = run(spark, place, **OPTIONS[shedder])
    result = place.audit()
    assert result.exact, (result.problems, result.missing)
    delivered = np.sort(rows["id"].to_numpy())
    kept = audited(place)
    assert np.array_equal(delivered, kept), difference(delivered, kept)
    totals = result.totals
    assert len(kept) == totals.admitted
    assert totals.admitted > 1_000
    assert totals.shed > 1_000
    share = totals.admitted / (totals.admitted + totals.shed)
    selection = asked_shedder(OPTIONS[shedder], "event_time")
    assert selection is not None
    assert share == pytest.approx(0.4, abs=0.25 if selection.whole_windows else 0.1)
    _check_promise(selection, rows, totals.admitted + totals.shed)
    if "utility" in OPTIONS[shedder]:
        assert rows["value"].to_numpy().mean() > 0.7  # a uniform sample has 0.5
    pickle.dumps(place.chain())


def _check_promise(selection: Shedder, rows: pa.Table, offered: int) -> None:
    weights = rows["_weight"].to_numpy()
    assert weights.min() >= 1.0 - 1e-9
    if not selection.no_sample:
        assert weights.sum() == pytest.approx(offered, rel=0.02)
    if selection.whole_windows:
        micros = rows["event_time"].cast(pa.timestamp("us")).cast(pa.int64())
        events = micros.to_numpy() // selection.whole_windows.length_us
        _, counts = np.unique(events, return_counts=True)
        whole = counts[1:-1]  # the run cuts the first and the last
        assert (whole > 0.98 * 30_000).all()
