import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.journal.entries import Event
from spillway.journal.files import FileJournal, read_journal
from spillway.model import Decided, Decision, KeepFraction, KeepOfBacklog, Measurement

Measure = Callable[..., Measurement]

HALF = Decision(action=KeepFraction(fraction=0.5), reason="half must go", headroom=0.97)
SEVEN = Decision(action=KeepOfBacklog(tuples=7), reason="seven fit", aim_s=1.5)


def times_s(path: Path) -> list[float]:
    return [e.time_s if isinstance(e, Event) else e.measurement.time_s for e in read_journal(path)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_recorded_can_be_read_back_for_a_replay(
    tmp_path: Path, measurement: Measure
) -> None:
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.record(measurement(), HALF)
    journal.record(measurement(2.0, query="q"), SEVEN)
    journal.event(2.0, "loop-lost", gate="a")
    assert list(read_journal(tmp_path / "journal.jsonl")) == [
        Decided(measurement=measurement(), decision=HALF),
        Decided(measurement=measurement(2.0, query="q"), decision=SEVEN),
        Event(time_s=2.0, kind="loop-lost", fields={"gate": "a"}),
    ]


def test_it_rotates_by_size_and_keeps_a_bounded_number_of_files(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j", max_bytes=300, keep_files=3)
    for number in range(60):
        journal.event(float(number), "tick", filler="x" * 40)
    journal.close()
    assert names(tmp_path) == ["j", "j.1", "j.2", "j.3"]
    assert all(path.stat().st_size <= 2 * 300 + 100 for path in tmp_path.iterdir())
    found = times_s(tmp_path / "j")
    assert found == [float(number) for number in range(60 - len(found), 60)]


def test_it_rotates_by_age_also_when_the_clock_is_set_back(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j", max_age_s=100.0)
    for time_s in (1000.0, 1099.0, 1101.0, 900.0):
        journal.event(time_s, "tick")
    assert [len((tmp_path / n).read_text().splitlines()) for n in ("j.2", "j.1", "j")] == [2, 1, 1]
    assert times_s(tmp_path / "j") == [1000.0, 1099.0, 1101.0, 900.0]


def test_a_restart_knows_how_old_its_file_is(tmp_path: Path) -> None:
    FileJournal(tmp_path / "j", max_age_s=100.0).event(1000.0, "started")
    FileJournal(tmp_path / "j", max_age_s=100.0).event(1050.0, "started")
    assert names(tmp_path) == ["j"]
    FileJournal(tmp_path / "j", max_age_s=100.0).event(1101.0, "started")
    assert names(tmp_path) == ["j", "j.1"]


def test_a_kill_in_the_middle_of_a_rotation_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for name, time_s in (("j.3", 1.0), ("j.1", 3.0), ("j", 4.0)):  # j.2 is not moved yet
        FileJournal(tmp_path / name).event(time_s, "tick")
    assert times_s(path) == [1.0, 3.0, 4.0]
    FileJournal(path, max_bytes=1).event(5.0, "tick")
    assert names(tmp_path) == ["j", "j.1", "j.2", "j.3"], "the gap is filled"
    assert times_s(path) == [1.0, 3.0, 4.0, 5.0]
    path.unlink()  # moved away, and no line since
    assert times_s(path) == [1.0, 3.0, 4.0]


def test_torn_lines_are_left_out_in_every_file(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j", max_age_s=10.0)
    journal.event(1.0, "tick")
    with (tmp_path / "j").open("a") as file:
        file.write('{"event":"torn')
    journal.event(20.0, "tick")
    assert times_s(tmp_path / "j") == [1.0, 20.0]


def test_a_reader_misses_nothing_when_files_move_under_it(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j", max_age_s=10.0)
    for time_s in (0.0, 20.0, 40.0):
        journal.event(time_s, "tick")
    reading = read_journal(tmp_path / "j")
    first = next(reading)
    journal.event(60.0, "tick")
    assert [first, *reading] == [Event(time_s=t, kind="tick") for t in (0.0, 20.0, 40.0)]


def test_lines_that_could_not_be_written_are_counted_and_said_later(tmp_path: Path) -> None:
    blocked = tmp_path / "folder"
    blocked.write_text("a file stands where the folder should be")
    journal = FileJournal(blocked / "journal.jsonl")
    journal.event(1.0, "lost")
    journal.event(2.0, "lost")
    assert journal.lost_lines == 2
    blocked.unlink()
    journal.event(3.0, "written")
    assert json.loads((blocked / "journal.jsonl").read_text())["lost_lines"] == 2
    assert journal.lost_lines == 0
    assert list(read_journal(blocked / "journal.jsonl")) == [
        Event(time_s=3.0, kind="lost", fields={"lines": 2}),
        Event(time_s=3.0, kind="written"),
    ]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full to fill a disk")
def test_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").symlink_to("/dev/full")
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.event(1.0, "lost")
    assert journal.lost_lines == 1


def test_a_missing_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="no journal at"):
        list(read_journal(tmp_path / "absent"))


@pytest.mark.parametrize("line", ["nonsense", "3", "[]", '{"measurement":{},"decision":{}}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "j").write_text('{"event":"tick","time_s":1.0}\n' + line + "\n")
    with pytest.raises(SpillwayError, match="j:2 is not a journal line"):
        list(read_journal(tmp_path / "j"))
