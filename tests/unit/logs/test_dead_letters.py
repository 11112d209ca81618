import json
import os
from pathlib import Path

import numpy as np
import pytest

from spillway.logs import dead_letters
from spillway.logs.dead_letters import (
    DeadLetters,
    Found,
    Malformed,
    dead_letter_totals,
    default_root,
    place_of,
)
from spillway.logs.intervals import NOWHERE, interval, runs


def at(*positions: int) -> Found:
    return Found(positions=runs(np.array(positions)))


def read(found: Found, start: int, stop: int) -> Found:
    """Found by a read of all of [start, stop)."""
    return Found(positions=found.positions, judged=interval(start, stop))


def samples(*positions: int, raw: bytes | None = b"x") -> list[Malformed]:
    return [Malformed(position=p, reason="broken", raw=raw) for p in positions]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.open()]


def test_a_position_counts_once_however_its_batch_is_cut_and_read_again(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(0, malformed=read(at(1, 2, 7), 0, 10), samples=samples(1, 2, 7))
    place.record(
        0, malformed=read(at(101, 150), 100, 200), lost=at(160, 161), samples=samples(101, 150)
    )
    place.record(0, malformed=read(at(2, 7, 101), 2, 120), samples=samples(2, 7, 101))
    place.record(1, malformed=read(at(1), 0, 10))
    place.record(0, lost=at(161, 162))
    assert dead_letter_totals(tmp_path) == {"malformed": 6, "lost": 3}
    sampled = [line["position"] for line in lines(tmp_path / "samples-0.jsonl")]
    assert sampled == [1, 2, 7, 101, 150]


def test_where_a_range_is_read_once_a_mask_every_mask_counts_its_own(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    for _ in range(2):  # and once more after a crash
        place.record(0, malformed=at(1, 9, 17))
        place.record(0, malformed=at(3, 10))
    assert dead_letter_totals(tmp_path)["malformed"] == 5


def test_a_record_that_was_read_once_and_had_gone_the_second_time_is_lost(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(0, malformed=read(at(7), 0, 500))
    place.record(0, lost=read(at(*range(200)), 0, 200))
    assert dead_letter_totals(tmp_path) == {"malformed": 1, "lost": 200}


@pytest.mark.parametrize("backwards", [False, True])
def test_every_second_record_of_many_reads_counts_once_in_any_order(
    tmp_path: Path, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far more separate positions than are remembered, by tasks that end in any order."""
    monkeypatch.setattr(dead_letters, "MOST_INTERVALS", 20)
    place, starts = DeadLetters(directory=str(tmp_path)), list(range(0, 100_000, 2_000))
    for start in starts[::-1] if backwards else starts:
        for _ in range(2):  # a task that is tried twice
            odd = Found(positions=runs(np.arange(start + 1, start + 2_000, 2)))
            place.record(0, malformed=read(odd, start, start + 2_000))
    assert dead_letter_totals(tmp_path)["malformed"] == 50_000


def test_the_state_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOST_INTERVALS", 100)
    place = DeadLetters(directory=str(tmp_path))
    for start in range(0, 10_000, 100):
        place.record(0, malformed=at(*range(start, start + 100, 2)))
    assert dead_letter_totals(tmp_path)["malformed"] == 5_000
    assert (tmp_path / "count-0.state").stat().st_size < 3_000
    place.record(0, malformed=at(9_996, 9_998))
    assert dead_letter_totals(tmp_path)["malformed"] == 5_000, "what is recent is known"


def test_a_hundred_million_positions_are_never_listed(tmp_path: Path) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(0, malformed=Found(positions=interval(0, 10**8), judged=interval(0, 10**8)))
    place.record(0, malformed=Found(positions=interval(10**8 - 9, 10**8 + 1)))
    assert dead_letter_totals(tmp_path)["malformed"] == 10**8 + 1
    assert (tmp_path / "count-0.state").stat().st_size < 200


def test_samples_are_bounded_and_keep_bytes_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "SAMPLES_FILE_BYTES", 2000)
    place = DeadLetters(directory=str(tmp_path))
    kept = [*samples(1, raw=b"\xff"), *samples(2, raw=None), *samples(3, raw=b"y" * 9000)]
    place.record(0, malformed=at(1, 2, 3), samples=kept)
    for index in range(1, 50):
        place.record(0, malformed=at(100 * index), samples=samples(100 * index))
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
    DeadLetters(directory=str(tmp_path / "file")).record(0, malformed=at(1))
    DeadLetters(directory=None).record(0, malformed=at(1))
    assert "dead letters cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "?\n", "7\n", '{"malformed": 4}\n', '{"intervals": [1, 0]}\n12']
)
def test_counts_that_are_damaged_stop_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "count-0.state").write_text(text)
    assert dead_letter_totals(tmp_path)["lost"] == 0
    DeadLetters(directory=str(tmp_path)).record(0, malformed=at(1))
    assert dead_letter_totals(tmp_path) == {"malformed": 1, "lost": 0}
    assert "is damaged: its counts begin anew" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what another user made")
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_place_that_another_user_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    shared, theirs = tmp_path / "tmp", tmp_path / "tmp" / "spillway-0"
    shared.mkdir()
    shared.chmod(0o1777)
    theirs.mkdir()
    theirs.chmod(mode)
    os.chown(theirs, 4711 if mode == 0o700 else 0, 0)  # another's, or open to everybody
    DeadLetters(directory=str(theirs / "dead_letters" / "g" / "1")).record(0, malformed=at(1))
    assert list(theirs.iterdir()) == []
    assert f"{theirs} is another user's" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what another user made")
def test_a_link_that_another_user_planted_is_not_followed(tmp_path: Path) -> None:
    shared, target = tmp_path / "tmp", tmp_path / "target"
    shared.mkdir()
    shared.chmod(0o1777)
    target.mkdir()
    link = shared / "spillway-0"
    link.symlink_to(target)
    os.chown(link, 4711, 0, follow_symlinks=False)
    DeadLetters(directory=str(link / "dead_letters")).record(0, malformed=at(1))
    assert list(target.iterdir()) == []


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "letters").mkdir()
    for name in ("lock-0", "count-0.new"):
        (tmp_path / "letters" / name).symlink_to(tmp_path / "victim")
    DeadLetters(directory=str(tmp_path / "letters")).record(0, malformed=at(1))
    assert (tmp_path / "victim").read_text() == "mine"


def test_the_first_malformed_record_is_said_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = DeadLetters(directory=str(tmp_path))
    place.record(3, malformed=at(1, 2))
    place.record(3, malformed=at(5))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "partition 3 has 2 malformed" in said[0]
    assert str(tmp_path) in said[0]


def test_nothing_malformed_writes_nothing(tmp_path: Path) -> None:
    nothing = Found(positions=NOWHERE, judged=interval(0, 100))
    DeadLetters(directory=str(tmp_path / "none")).record(0, malformed=nothing)
    assert not (tmp_path / "none").exists()


def test_there_is_always_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = str(tmp_path / "spillway" / "ledger.jsonl")
    assert default_root(ledger) == str(tmp_path / "spillway" / "dead_letters")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    alone = place_of(default_root(None), "a1b2", 7)
    DeadLetters(directory=alone).record(0, malformed=at(1))
    assert dead_letter_totals(alone)["malformed"] == 1
    private = tmp_path / f"spillway-{os.getuid()}"
    assert private.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("gate", ["../../etc", "..", "a/b", "a.b", "a\\b", "/x", "é" * 300])
def test_a_gates_name_is_never_a_path(tmp_path: Path, gate: str) -> None:
    place = Path(place_of(tmp_path, gate, 5))
    assert place.parent.parent == tmp_path
    assert len(place.parent.name) < 256
    DeadLetters(directory=str(place)).record(0, malformed=at(1))
    assert [folder.name for folder in tmp_path.iterdir()] == [place.parent.name]


def test_every_life_of_every_gate_has_a_place_of_its_own(tmp_path: Path) -> None:
    lives = [("a/b", 1), ("a/b", 2), ("a.b", 1), ("é" * 300, 1), ("é" * 301, 1)]
    assert len({place_of(tmp_path, *life) for life in lives}) == len(lives)
