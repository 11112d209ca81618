from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import SpillwayError
from spillway_lab.workloads.files import replay


def write_csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_csv_parquet_and_npy_give_the_same_arrivals(tmp_path: Path) -> None:
    times = [5.0, 5.5, 7.0]
    csv = write_csv(tmp_path / "a.csv", "time_s,x\n5.0,1\n5.5,2\n7.0,3\n")
    pq.write_table(pa.table({"time_s": times}), tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", np.array(times))
    for path in (csv, tmp_path / "a.parquet", tmp_path / "a.npy"):
        assert list(replay(path)) == [0.0, 0.5, 2.0]


def test_time_compression_doubles_the_rate_and_units_are_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([0, 2_000_000, 4_000_000], dtype=np.uint32))
    assert list(replay(tmp_path / "a.npy", unit="us", compression=2.0)) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("time_s\n", "is empty"),
        ("time_s\n1\n3\n2\n", "decreasing times: row 2 is 2 after 3"),
        ("arrival\n1\n", "no column 'time_s': it has arrival"),
        ("time_s\n1\nsoon\n", "cannot be read"),
        ("time_s\n1\n\nnan\n", "no time in row"),
    ],
)
def test_a_bad_csv_gets_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SpillwayError, match=complaint) as caught:
        replay(write_csv(tmp_path / "a.csv", text))
    assert "\n" not in str(caught.value)


def test_an_empty_or_missing_or_unknown_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    (tmp_path / "a.parquet").write_bytes(b"")
    for name, complaint in [
        ("a.npy", "cannot be read"),
        ("a.parquet", "cannot be read"),
        ("b.csv", "does not exist"),
    ]:
        with pytest.raises(SpillwayError, match=complaint):
            replay(tmp_path / name)
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(SpillwayError, match="unknown kind"):
        replay(tmp_path / "a.txt")


def test_a_compression_of_zero_and_an_unknown_unit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="time compression"):
        replay(tmp_path / "a.npy", compression=0.0)
    with pytest.raises(SpillwayError, match="time unit is 'h'"):
        replay(tmp_path / "a.npy", unit="h")
