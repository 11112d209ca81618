import json
import os
from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.journal.files import FileJournal, read_decisions
from spillway.model import BatchRecord, Decision, KeepFraction, KeepOfBacklog, Measurement, Target


def measurement(time_s: float = 1.0) -> Measurement:
    batch = BatchRecord(kept_tuples=5, scanned_tuples=9, duration_s=0.5, ended_s=0.9)
    return Measurement(
        time_s=time_s,
        period_s=1.0,
        target=Target(delay_s=2.0, statistic="p99"),
        offered_tuples=100,
        admitted_tuples=60,
        shed_tuples=40,
        completed_tuples=50,
        queued_tuples=10,
        queued_load_s=0.1,
        offered_load=1.2,
        admitted_load=0.7,
        cost_s=0.012,
        delay_s=None,
        busy_s=0.6,
        batches=(batch,),
    )


def test_what_is_recorded_can_be_read_back_for_a_replay(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal.jsonl")
    decisions = [
        Decision(action=KeepFraction(fraction=0.5), reason="half must go", headroom=0.97),
        Decision(action=KeepOfBacklog(tuples=7), reason="seven fit"),
    ]
    for decision in decisions:
        journal.record(measurement(), decision)
    journal.event(2.0, "loop-lost", gate="a")
    assert list(read_decisions(tmp_path / "journal.jsonl")) == [
        (measurement(), decision) for decision in decisions
    ]


def test_it_rotates_by_size_and_keeps_a_bounded_number_of_files(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j", max_bytes=300, keep_files=3)
    for number in range(60):
        journal.event(float(number), "tick", filler="x" * 40)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["j", "j.1", "j.2", "j.3"]
    assert all(path.stat().st_size <= 300 for path in tmp_path.iterdir())
    newest = (tmp_path / "j").read_text().splitlines()[-1]
    assert json.loads(newest)["time_s"] == 59.0


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full to fill a disk")
def test_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").symlink_to("/dev/full")
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.event(1.0, "lost")
    assert journal.lost_lines == 1


def test_a_missing_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="no journal at"):
        list(read_decisions(tmp_path / "absent"))
