"""The files of a journal: the current one, and `path.1`, `path.2`, ..., ever older."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def rotated(path: Path) -> dict[int, Path]:
    """By number, the newest first."""
    found = {}
    for file in path.parent.glob(f"{path.name}.*"):
        number = file.name.removeprefix(f"{path.name}.")
        if number.isdecimal():
            found[int(number)] = file
    return dict(sorted(found.items()))


def shift(path: Path) -> None:
    """Makes the current file number 1 and every file one older, up to a gap that a kill left."""
    number = 1
    while _numbered(path, number).exists():
        number += 1
    for older in range(number, 1, -1):
        _numbered(path, older - 1).replace(_numbered(path, older))
    path.replace(_numbered(path, 1))


@contextmanager
def open_files(path: Path) -> Iterator[list[tuple[Path, BinaryIO]]]:
    """All files of a journal, the oldest first.

    They are opened from the newest on: a rotation meanwhile can only show a file twice.
    """
    found: dict[int, tuple[Path, BinaryIO]] = {}
    with ExitStack() as stack:
        for file in (path, *rotated(path).values()):
            with suppress(FileNotFoundError):
                opened = stack.enter_context(file.open("rb"))
                found.setdefault(os.fstat(opened.fileno()).st_ino, (file, opened))
        yield list(reversed(found.values()))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
