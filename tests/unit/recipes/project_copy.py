"""A copy of the project in which a recipe of CONTRIBUTING.md is followed to the letter."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PARTS = ("src/spillway", "docs", "tests/contract")
FILES = ("pyproject.toml", "tests/conftest.py")


@dataclass(frozen=True)
class ProjectCopy:
    root: Path

    @classmethod
    def at(cls, root: Path) -> "ProjectCopy":
        for part in PARTS:
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        for file in FILES:
            shutil.copy(ROOT / file, root / file)
        return cls(root)

    def write(self, path: str, text: str) -> None:
        assert not (self.root / path).exists()
        (self.root / path).write_text(text)

    def insert(self, path: str, text: str, *, after: str = "", before: str = "") -> None:
        """`text` beside the one line that begins so."""
        mark = after or before
        lines = (self.root / path).read_text().splitlines(keepends=True)
        [place] = [at for at, line in enumerate(lines) if line.startswith(mark)]
        lines.insert(place + bool(after), text)
        (self.root / path).write_text("".join(lines))

    def run(self, *arguments: str) -> str:
        """What Python prints in a process that knows only the copy."""
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root / "src")},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def blocks_of(title: str) -> list[str]:
    """The code of one recipe."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)
