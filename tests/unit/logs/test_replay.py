from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log
from spillway.ports import Log, Span


def replay(path: Path, **options: str) -> Log:
    return open_log({"source": "replay", "path": str(path), "start": "1000", **options})


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timestamp,x\n1,5\n3,6\n2,7\n", "decreases at row 2, from 3 to 2"),
        ("timestamp,x\n", "is empty"),
        ("", "has no column 'timestamp'"),
        ("when,x\n1,2\n", "has no column 'timestamp': it has when, x"),
        ("timestamp,x\n1,2\n,3\n", "has 1 empty times"),
        ("timestamp,x\nsoon,2\n", "must hold numbers or timestamps"),
        ("timestamp,x\n1,2\n3\n", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpillwayError, match=message) as raised:
        replay(csv(tmp_path, text)).extent(1000.0)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match=r"nowhere\.npy does not exist"):
        replay(tmp_path / "nowhere.npy").columns()


def test_a_file_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("1\n")
    with pytest.raises(SpillwayError, match="unknown kind"):
        replay(tmp_path / "trace.txt").columns()


def test_a_wrong_type_is_named_before_anything_runs(tmp_path: Path) -> None:
    pq.write_table(pa.table({"timestamp": [1, 2], "x": ["a", "b"]}), tmp_path / "t.parquet")
    options = {"source": "replay", "path": str(tmp_path / "t.parquet")}
    with pytest.raises(SpillwayError, match=r"column 'x' of .* is string: .* read as int64"):
        open_log(options, pa.schema([("x", pa.int64())])).columns()


def test_speed_counts_for_numbers_and_for_timestamps(tmp_path: Path) -> None:
    stamps = pa.array([0, 4_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"timestamp": stamps}), tmp_path / "t.parquet")
    np.save(tmp_path / "t.npy", np.array([7.0, 11.0]))
    for name in ("t.parquet", "t.npy"):
        log = replay(tmp_path / name, speed="4")
        assert log.extent(1000.999)[0].stop == 1
        assert log.extent(1001.0)[0].stop == 2


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = csv(tmp_path, "timestamp,x\n1,5\n")
    assert replay(path).extent(2000.0)[0].stop == 1
    path.write_text("timestamp,x\n1,5\n2,6\n")
    assert replay(path).extent(2000.0)[0].stop == 2


def test_a_start_may_be_written_as_a_date(tmp_path: Path) -> None:
    path = csv(tmp_path, "timestamp,x\n1,5\n")
    log = replay(path, start="2026-01-31T12:00:00")
    span = Span(partition=0, start=0, stop=1)
    assert log.arrivals(span).times_s[-1] == 1769860800.0
    with pytest.raises(SpillwayError, match="option 'start' is 'soon'"):
        replay(path, start="soon").extent(0.0)


def test_without_a_start_the_error_says_so(tmp_path: Path) -> None:
    path = csv(tmp_path, "timestamp,x\n1,5\n")
    with pytest.raises(SpillwayError, match="option 'start' is missing"):
        open_log({"source": "replay", "path": str(path)}).extent(0.0)


@pytest.mark.parametrize(
    ("name", "value"), [("speed", "0"), ("speed", "fast"), ("loop", "maybe"), ("unit", "h")]
)
def test_a_bad_option_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SpillwayError, match=f"option '{name}' is"):
        replay(tmp_path / "t.csv", **{name: value})


def test_a_file_that_got_shorter_is_never_read_at_other_rows(tmp_path: Path) -> None:
    path = csv(tmp_path, "timestamp,x\n1,5\n2,6\n3,7\n")
    log = replay(path)
    (planned,) = log.extent(2000.0)
    csv(tmp_path, "timestamp,x\n1,5\n2,6\n")
    with pytest.raises(SpillwayError, match="has 2 rows: row 2 was asked for") as raised:
        list(log.read(planned, None))
    assert "\n" not in str(raised.value)
