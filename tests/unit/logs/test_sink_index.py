import sys
from pathlib import Path

import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log
from spillway.logs.sink_index import SinkIndex
from spillway.ports import Log

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from log_cases import compact, write_batch


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(log: Log, stop: int) -> list[int]:
    (span,) = log.extent(0.0)
    assert span.stop == stop
    return [value for batch in log.read(span, None) for value in batch.column("id").to_pylist()]


def test_batches_come_in_commit_order_and_as_they_are_committed(tmp_path: Path) -> None:
    log = open_log({"source": "files", "path": str(tmp_path)}, rows().schema)
    assert ids(log, 0) == []
    write_batch(tmp_path, 0, [rows(1, 2), rows(3)], 10.0)
    assert ids(log, 3) == [1, 2, 3]
    write_batch(tmp_path, 1, [rows(), rows(4)], 11.0)
    assert ids(log, 4) == [1, 2, 3, 4]


def test_compaction_moves_no_position(tmp_path: Path) -> None:
    known, fresh = SinkIndex(str(tmp_path)), SinkIndex(str(tmp_path))
    for batch in range(3):
        write_batch(tmp_path, batch, [rows(10 * batch, 10 * batch + 1)], 10.0 + batch)
    known.refresh()
    write_batch(tmp_path, 3, [rows(30)], 13.0)
    compact(tmp_path, 3)
    write_batch(tmp_path, 4, [rows(40)], 14.0)
    known.refresh()
    fresh.refresh()
    assert list(known.files(0, 8)) == list(fresh.files(0, 8))
    assert fresh.rows == 8


def test_files_that_were_never_committed_are_not_read(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [rows(1)], 10.0)
    write_batch(tmp_path, 1, [rows(2)], 11.0)
    (tmp_path / "_spark_metadata" / "1").unlink()
    write_batch(tmp_path, 2, [rows(3)], 12.0)
    index = SinkIndex(str(tmp_path))
    index.refresh()
    assert index.rows == 1, "batch 2 cannot be placed before batch 1 is known"


def test_a_sink_log_that_forgets_files_is_refused(tmp_path: Path) -> None:
    for batch in range(3):
        write_batch(tmp_path, batch, [rows(batch)], 10.0 + batch)
    index = SinkIndex(str(tmp_path))
    index.refresh()
    write_batch(tmp_path, 3, [rows(3)], 13.0)
    compact(tmp_path, 3)
    path = tmp_path / "_spark_metadata" / "3.compact"
    lines = path.read_text().split("\n")
    path.write_text("\n".join([lines[0], *lines[2:]]))
    with pytest.raises(SpillwayError, match="without a retention time"):
        index.refresh()


def test_a_directory_that_was_moved_is_still_readable(tmp_path: Path) -> None:
    write_batch(tmp_path / "old place", 0, [rows(1, 2)], 10.0)
    (tmp_path / "old place").rename(tmp_path / "new place")
    assert ids(open_log({"source": "files", "path": str(tmp_path / "new place")}), 2) == [1, 2]


def test_an_empty_directory_needs_a_schema(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="no committed rows yet"):
        open_log({"source": "files", "path": str(tmp_path)}).columns()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [rows(1)], 10.0)
    next(tmp_path.glob("*.parquet")).write_bytes(b"no parquet")
    with pytest.raises(SpillwayError, match=r"part-00000-0.* cannot be read as Parquet"):
        SinkIndex(str(tmp_path)).refresh()


def test_a_file_that_goes_after_it_was_planned_is_named(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [rows(1, 2)], 10.0)
    log = open_log({"source": "files", "path": str(tmp_path)}, rows().schema)
    (span,) = log.extent(0.0)
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    with pytest.raises(SpillwayError, match="is committed but has gone") as raised:
        list(log.read(span, None))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_damaged_after_it_was_planned_is_named(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [rows(1, 2, 3)], 10.0)
    log = open_log({"source": "files", "path": str(tmp_path)}, rows().schema)
    (span,) = log.extent(0.0)
    for file in tmp_path.glob("*.parquet"):
        file.write_bytes(b"no parquet")
    with pytest.raises(SpillwayError, match="is committed but is no Parquet file") as raised:
        list(log.read(span, None))
    assert "\n" not in str(raised.value)


def five_batches(folder: Path) -> None:
    for batch in range(5):
        write_batch(folder, batch, [rows(), rows(10 * batch, 10 * batch + 1)], 10.0 + batch)


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_deleted_moves_no_position_for_anybody(tmp_path: Path, compacted: bool) -> None:
    options = {"source": "files", "path": str(tmp_path)}
    known, deleting = open_log(options), SinkIndex(str(tmp_path))
    five_batches(tmp_path)
    known.extent(0.0)
    assert deleting.delete(below=5, before_s=99.0) == 2, "row 4 is in the third file"
    if compacted:
        compact(tmp_path, 4)
    write_batch(tmp_path, 5, [rows(50)], 15.0)
    fresh = SinkIndex(str(tmp_path))
    fresh.refresh()
    for index in (fresh, deleting):
        index.refresh()
        assert (index.first, index.rows) == (4, 11)
        assert [file.first for file in index.files(4, 11)] == [4, 6, 8, 10]
    (span,) = known.extent(0.0)
    assert (span.start, span.stop) == (4, 11)
    read = [v for batch in known.read(span, None) for v in batch.column("id").to_pylist()]
    assert read == [20, 21, 30, 31, 40, 41, 50]
    assert len(list(tmp_path.glob("*.parquet"))) == 9, "two files had rows"


def test_only_what_is_old_enough_goes_and_the_newest_file_never(tmp_path: Path) -> None:
    five_batches(tmp_path)
    index = SinkIndex(str(tmp_path))
    assert index.delete(below=10, before_s=12.0) == 2
    assert index.delete(below=10, before_s=99.0) == 2
    assert index.delete(below=10, before_s=99.0) == 0
    assert (index.first, index.rows) == (8, 10)
    assert open_log({"source": "files", "path": str(tmp_path)}).columns() == rows().schema


def test_more_is_deleted_after_a_restart(tmp_path: Path) -> None:
    five_batches(tmp_path)
    SinkIndex(str(tmp_path)).delete(below=2, before_s=99.0)
    again = SinkIndex(str(tmp_path))
    assert again.delete(below=6, before_s=99.0) == 2
    fresh = SinkIndex(str(tmp_path))
    fresh.refresh()
    assert (fresh.first, fresh.rows) == (6, 10)


def test_an_index_that_lags_behind_what_was_deleted_goes_on(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [rows(0)], 10.0)
    lagging = SinkIndex(str(tmp_path))
    lagging.refresh()
    for batch in range(1, 4):
        write_batch(tmp_path, batch, [rows(batch)], 10.0 + batch)
    SinkIndex(str(tmp_path)).delete(below=3, before_s=99.0)
    lagging.refresh()
    assert (lagging.first, lagging.rows) == (3, 4)
    assert [file.first for file in lagging.files(3, 4)] == [3]


def test_a_row_that_was_deleted_is_refused_in_a_line(tmp_path: Path) -> None:
    five_batches(tmp_path)
    index = SinkIndex(str(tmp_path))
    index.delete(below=4, before_s=99.0)
    with pytest.raises(SpillwayError, match=r"no row 1 any more.*up to row 4"):
        list(index.files(1, 6))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"entries": -1, "rows": 0}', '{"entries": 1, "rows": 1e99}', "\0"]
)
def test_a_damaged_note_of_what_was_deleted_is_refused(tmp_path: Path, text: str) -> None:
    five_batches(tmp_path)
    (tmp_path / "_spillway_passed").write_text(text)
    with pytest.raises(SpillwayError, match="is damaged: restore it") as raised:
        SinkIndex(str(tmp_path)).refresh()
    assert "\n" not in str(raised.value)
