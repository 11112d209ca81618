from collections.abc import Callable
from pathlib import Path

import pytest

from spillway.journal import summary
from spillway.journal.files import FileJournal
from spillway.journal.summary import Hour, read_hours, retire, summary_path
from spillway.lines import append
from spillway.model import ADMIT_ALL, Decision, Measurement

Measure = Callable[..., Measurement]

ALL = Decision(action=ADMIT_ALL, reason="everything fits")


def test_an_hour_adds_up_and_weighs_delays_by_what_completed(
    tmp_path: Path, measurement: Measure
) -> None:
    journal = FileJournal(tmp_path / "j")
    journal.record(measurement(3601.0, delay_s=1.0, completed_tuples=30), ALL)
    journal.record(measurement(3602.0, delay_s=None, completed_tuples=0), ALL)
    journal.event(3603.0, "restarted")
    journal.record(measurement(3604.0, delay_s=2.0, completed_tuples=10), ALL)
    journal.record(measurement(3605.0, class_name="gold"), ALL)
    journal.record(measurement(7200.0, query="q"), ALL)
    default, gold, query = read_hours(tmp_path / "j")
    assert default == Hour(
        hour_s=3600,
        class_name="default",
        first_s=3601.0,
        last_s=3604.0,
        decisions=3,
        offered_tuples=300,
        admitted_tuples=180,
        shed_tuples=120,
        completed_tuples=40,
        delay_s=1.25,
        max_delay_s=2.0,
    )
    assert (gold.class_name, gold.decisions, gold.delay_s) == ("gold", 1, None)
    assert (query.hour_s, query.query) == (7200, "q")


def test_a_report_over_weeks_counts_what_is_long_gone(tmp_path: Path, measurement: Measure) -> None:
    whole, bounded = FileJournal(tmp_path / "whole"), FileJournal(tmp_path / "j", keep_files=2)
    for number in range(21 * 24):
        for journal in (whole, bounded):
            journal.record(measurement(number * 3600.0, offered_tuples=number, delay_s=0.5), ALL)
    bounded.close()
    assert len(list(tmp_path.glob("j.[0-9]*"))) == 2
    found = read_hours(tmp_path / "j")
    assert len(found) == 21 * 24
    assert found == read_hours(tmp_path / "whole")


def test_a_file_that_a_kill_left_behind_counts_once(tmp_path: Path, measurement: Measure) -> None:
    path = tmp_path / "j"
    FileJournal(tmp_path / "j.8").record(measurement(delay_s=1 / 3), ALL)
    left = (tmp_path / "j.8").read_bytes()
    retire(path, tmp_path / "j.8")
    before = read_hours(path)
    (tmp_path / "j.8").write_bytes(left)
    assert read_hours(path) == before
    FileJournal(path).record(measurement(), ALL)
    journal = FileJournal(path, max_bytes=1)
    journal.record(measurement(), ALL)
    journal.close()
    assert not (tmp_path / "j.8").exists()
    assert [hour.decisions for hour in read_hours(path)] == [3]


def test_a_full_disk_makes_room_for_the_summary(
    tmp_path: Path, measurement: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "j.8"
    FileJournal(old).record(measurement(), ALL)

    def full(path: Path, *lines: bytes) -> None:
        if old.exists():
            raise OSError("no space left on device")
        append(path, *lines)

    monkeypatch.setattr(summary, "append", full)
    retire(tmp_path / "j", old)
    assert [hour.decisions for hour in read_hours(tmp_path / "j")] == [1]


def test_damaged_lines_say_nothing(tmp_path: Path, measurement: Measure) -> None:
    path = tmp_path / "j"
    FileJournal(path).record(measurement(), ALL)
    with path.open("ab") as file:
        file.write(b'\xff\n3\n{"measurement":{}}\n')
    summary_path(path).write_bytes(b"\xff\n3\n{}\n")
    assert [hour.decisions for hour in read_hours(path)] == [1]
