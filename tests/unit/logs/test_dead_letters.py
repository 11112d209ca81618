import json
from pathlib import Path

from spillway.logs import dead_letters
from spillway.logs.dead_letters import DeadLetters, Malformed, dead_letter_totals
from spillway.ports import Span


def span(start: int, partition: int = 0) -> Span:
    return Span(partition=partition, start=start, stop=start + 100)


def bad(position: int, raw: bytes | None = b"x") -> Malformed:
    return Malformed(position=position, reason="broken", raw=raw)


def test_a_span_that_is_read_again_replaces_its_count(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(span(0), [bad(1)], 3)
    place.record(span(100), [bad(101)], 4, lost=2)
    place.record(span(0), [bad(1)], 3)
    place.record(span(0, partition=1), [bad(1)], 1)
    assert dead_letter_totals(tmp_path) == {"malformed": 8, "lost": 2}


def test_counts_stay_exact_and_small_over_many_spans(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    for index in range(dead_letters.RECENT_SPANS + 9):
        place.record(span(100 * index), [], 2)
    place.record(span(100 * index), [], 2)
    assert dead_letter_totals(tmp_path)["malformed"] == 2 * (dead_letters.RECENT_SPANS + 9)
    state = json.loads((tmp_path / "count-0.json").read_text())
    assert len(state["recent"]) == dead_letters.RECENT_SPANS


def test_samples_are_bounded_and_keep_bytes_that_are_no_text(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(dead_letters, "SAMPLES_FILE_BYTES", 2000)
    place = DeadLetters(directory=str(tmp_path))
    place.record(span(0), [bad(1, b"\xff"), bad(2, None), bad(3, b"y" * 9000)], 3)
    for index in range(1, 50):
        place.record(span(100 * index), [bad(100 * index)], 1)
    lines = [json.loads(line) for line in (tmp_path / "samples-0.jsonl").open()]
    assert lines[0]["value_base64"] == "/w=="
    assert lines[1]["value"] is None
    assert len(lines[2]["value"]) == dead_letters.SAMPLE_BYTES
    assert len(lines) == 3, "the file was full after the first span"
    assert dead_letter_totals(tmp_path)["malformed"] == 52


def test_a_place_that_cannot_be_written_does_not_stop_anything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    DeadLetters(directory=str(tmp_path / "file")).record(span(0), [bad(1)], 1)
    DeadLetters(directory=None).record(span(0), [bad(1)], 1)


def test_nothing_malformed_writes_nothing(tmp_path: Path) -> None:
    DeadLetters(directory=str(tmp_path / "none")).record(span(0), [], 0)
    assert not (tmp_path / "none").exists()
