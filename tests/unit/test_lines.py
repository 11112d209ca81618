"""What ledger, journal, instance store and dead letters rely on when a process or a disk fails."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spillway import lines
from spillway.lines import WaitingLines, append, line_of, line_writer, whole_lines

FIRST, SECOND = line_of({"n": 1}), line_of({"text": "zwölf\n"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "lines"


def read(path: Path, last_bytes: int | None = None) -> list[bytes]:
    return list(whole_lines(path, last_bytes))


def test_lines_come_back_in_order_and_the_folder_is_made(path: Path) -> None:
    append(path, FIRST)
    append(path, SECOND, FIRST)
    assert read(path) == [FIRST, SECOND, FIRST]
    assert json.loads(read(path)[1]) == {"text": "zwölf\n"}


def test_a_writer_that_was_killed_at_any_byte_of_a_line_costs_that_line_only(path: Path) -> None:
    append(path, FIRST, SECOND)
    whole = path.read_bytes()
    for size in range(len(FIRST) + 1, len(whole)):
        path.write_bytes(whole[:size])
        assert read(path) == [FIRST]
        append(path, b"next")
        assert read(path) == [FIRST, b"next"]


@pytest.mark.parametrize("block_bytes", [1, 2, 5, 1 << 16])
def test_a_torn_line_is_cut_however_long_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(lines, "_BLOCK_BYTES", block_bytes)
    append(path, FIRST)
    with path.open("ab") as file:
        file.write(b"torn" * 50)
    append(path, SECOND)
    assert read(path) == [FIRST, SECOND]


def test_a_file_that_is_nothing_but_a_torn_line_starts_anew(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"n":')
    assert read(path) == []
    append(path, FIRST)
    assert read(path) == [FIRST]


def test_an_empty_file_has_no_lines_and_takes_one(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert read(path) == read(path, 10) == []
    append(path, FIRST)
    assert read(path) == [FIRST]


def test_bytes_that_are_no_text_harm_no_other_line(path: Path) -> None:
    append(path, FIRST, b"\xff\x00\xfe", SECOND)
    assert read(path) == [FIRST, b"\xff\x00\xfe", SECOND]
    with path.open("ab") as file:
        file.write(b"\x00" * 4096)  # what a power cut can leave
    append(path, FIRST)
    assert read(path)[-2:] == [SECOND, FIRST]


def short_write(descriptor: int, data: bytes) -> int:
    return real_write(descriptor, data[:3])


def refused_write(descriptor: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, "no space left on device")


real_write = os.write


@pytest.mark.parametrize("write", [short_write, refused_write])
def test_a_full_disk_leaves_no_part_of_a_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[int, bytes], int]
) -> None:
    append(path, FIRST)
    before = path.read_bytes()
    with monkeypatch.context() as full:
        full.setattr(os, "write", write)
        with pytest.raises(OSError, match="no space"):
            append(path, SECOND, FIRST)
    assert path.read_bytes() == before
    append(path, SECOND)
    assert read(path) == [FIRST, SECOND]


def test_a_line_that_cannot_be_made_durable_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(descriptor: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="input/output"), line_writer(path) as file:
        file.append(FIRST, durable=True)
    assert read(path) == []


def test_two_writers_that_are_open_at_once_append_whole_lines(path: Path) -> None:
    program = "\n".join(
        (
            "import sys, pathlib",
            "from spillway.lines import append, line_of",
            "for n in range(200):",
            "    append(pathlib.Path(sys.argv[1]), line_of([sys.argv[2], n, 'x' * 9000]))",
        )
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("a", "b")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = [json.loads(line) for line in read(path)]
    for name in ("a", "b"):
        assert [number for writer, number, _ in found if writer == name] == list(range(200))


def test_a_second_writer_waits_until_the_first_has_left(path: Path) -> None:
    program = "import sys, pathlib; from spillway.lines import append; "
    program += "print(flush=True); append(pathlib.Path(sys.argv[1]), b'second')"
    with line_writer(path) as file:
        second = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
        )
        assert second.stdout is not None
        second.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.1)
        file.append(b"first")
    assert second.wait(60) == 0
    second.stdout.close()
    assert read(path) == [b"first", b"second"]


@pytest.mark.parametrize(
    ("last_bytes", "expected"),
    [(4, 0), (5, 1), (9, 1), (10, 2), (14, 2), (15, 3), (99, 3)],
)
def test_the_tail_of_a_long_file_begins_with_a_whole_line(
    path: Path, last_bytes: int, expected: int
) -> None:
    every = [b"aaaa", b"bbbb", b"cccc"]
    append(path, *every)
    assert read(path, last_bytes) == every[3 - expected :]


def test_lines_wait_while_the_disk_refuses_and_it_is_said_once(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = WaitingLines(path, "ledger")
    with monkeypatch.context() as full:
        full.setattr(os, "write", short_write)
        waiting.add(b"1111")
        waiting.add(b"2222")
    assert capsys.readouterr().err.count(f"ledger {path} cannot be written") == 1
    assert read(path) == []
    waiting.add(b"3333")
    assert read(path) == [b"1111", b"2222", b"3333"]
    with monkeypatch.context() as full:
        full.setattr(os, "write", short_write)
        waiting.add(b"4444")
    assert capsys.readouterr().err.count("cannot be written") == 1, "another time is said again"


def test_of_too_many_waiting_lines_the_oldest_go(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_WAITING_LINES", 2)
    waiting = WaitingLines(path, "ledger")
    with monkeypatch.context() as full:
        full.setattr(os, "write", refused_write)
        for line in (b"1", b"2", b"3"):
            waiting.add(line)
    waiting.add(b"4")
    assert read(path) == [b"3", b"4"]


def test_it_imports_nothing_but_the_standard_library() -> None:
    program = "import sys, spillway.lines; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    ours = {name for name in found.stdout.split() if name.startswith("spillway")}
    assert ours == {"spillway", "spillway.lines", "spillway.private"}
