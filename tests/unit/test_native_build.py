"""A native reader that cannot be built is one line, and no failure."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def built(python: str, path: str) -> str:
    """What `scripts/native` says; it must end well."""
    done = subprocess.run(
        ["/bin/sh", "scripts/native", python],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def test_without_cargo_one_line_says_so(tmp_path: Path) -> None:
    said = built("python", str(tmp_path))
    assert said == "no native reader (cargo is not on the PATH): Kafka is read in Python\n"


def test_a_build_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    programs = {"cargo": "", "python": "echo begin\necho 'error: no such crate'\nexit 1"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    said = built(str(tmp_path / "python"), f"{tmp_path}:/usr/bin:/bin")
    assert said.splitlines()[1:] == [
        "no native reader (error: no such crate): Kafka is read in Python"
    ]
