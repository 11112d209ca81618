import json
from pathlib import Path

import numpy as np
import pytest

from spillway.logs import dead_letters
from spillway.logs.dead_letters import (
    NOWHERE,
    DeadLetters,
    Malformed,
    dead_letter_totals,
    default_place,
)


def bad(*positions: int) -> tuple[np.ndarray, list[Malformed]]:
    return np.array(positions), [sample(p) for p in positions]


def sample(position: int, raw: bytes | None = b"x") -> Malformed:
    return Malformed(position=position, reason="broken", raw=raw)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.open()]


def test_a_position_counts_once_however_its_batch_is_cut_and_read_again(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(0, *bad(1, 2, 7))
    place.record(0, *bad(101, 150), lost=np.array([160, 161]))
    place.record(0, *bad(2, 7, 101))
    place.record(1, *bad(1))
    place.record(0, NOWHERE, lost=np.array([161, 162]))
    assert dead_letter_totals(tmp_path) == {"malformed": 6, "lost": 3}
    sampled = [line["position"] for line in lines(tmp_path / "samples-0.jsonl")]
    assert sampled == [1, 2, 7, 101, 150]


def test_counts_stay_exact_and_small_over_many_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "RECENT_RANGES", 20)
    place = DeadLetters(directory=str(tmp_path))
    for index in range(50):
        place.record(0, *bad(100 * index, 100 * index + 1))
    place.record(0, *bad(4900, 4901))
    place.record(0, *bad(0, 1))  # settled long ago
    assert dead_letter_totals(tmp_path)["malformed"] == 100
    state = json.loads((tmp_path / "count-0.json").read_text())
    assert len(state["recent"]["malformed"]) == 20


def test_samples_are_bounded_and_keep_bytes_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "SAMPLES_FILE_BYTES", 2000)
    place = DeadLetters(directory=str(tmp_path))
    samples = [sample(1, b"\xff"), sample(2, None), sample(3, b"y" * 9000)]
    place.record(0, np.array([1, 2, 3]), samples)
    for index in range(1, 50):
        place.record(0, *bad(100 * index))
    found = lines(tmp_path / "samples-0.jsonl")
    assert found[0]["value_base64"] == "/w=="
    assert found[1]["value"] is None
    assert len(str(found[2]["value"])) == dead_letters.SAMPLE_BYTES
    assert len(found) == 3, "the file was full after the first read"
    assert dead_letter_totals(tmp_path)["malformed"] == 52


def test_a_place_that_cannot_be_written_stops_nothing_and_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    DeadLetters(directory=str(tmp_path / "file")).record(0, *bad(1))
    DeadLetters(directory=None).record(0, *bad(1))
    assert "dead letters cannot be written" in capsys.readouterr().err


def test_the_first_malformed_record_is_said_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(3, *bad(1, 2))
    place.record(3, *bad(5))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "partition 3 has 2 malformed" in said[0]
    assert str(tmp_path) in said[0]


def test_nothing_malformed_writes_nothing(tmp_path: Path) -> None:
    DeadLetters(directory=str(tmp_path / "none")).record(0, NOWHERE)
    assert not (tmp_path / "none").exists()


def test_there_is_always_a_place(tmp_path: Path) -> None:
    ledger = str(tmp_path / "spillway" / "ledger.jsonl")
    beside = default_place("query/stream", ledger)
    assert beside == str(tmp_path / "spillway" / "dead_letters" / "query.stream")
    assert default_place("a1b2", None).endswith("/a1b2")
