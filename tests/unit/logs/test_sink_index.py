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
