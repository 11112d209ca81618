"""Commands that pages show can be given as they stand: their options, names and files are there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from spillway.cli.app import app
from spillway_lab.benchmarks.registry import BENCHMARKS
from spillway_lab.experiments.registry import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^ {4}(?:\$ )?(spillway [^#\n]*?(?:\\\n[^#\n]*?)*)\s*(?:#.*)?$", re.MULTILINE)
QUOTED = re.compile(r"`(spillway (?:bench|reproduce|simulate) [a-z][^`\n|]*)`")
MAKE = re.compile(r"(?:`|^ {4})make ([a-z-]+)", re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text()
        for line in (*BLOCK.findall(text), *QUOTED.findall(text)):
            yield str(page.relative_to(ROOT)), " ".join(line.replace("\\\n", " ").split())


@pytest.mark.parametrize(("page", "line"), sorted(set(shown())))
def test_a_command_is_understood(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    context = click.Context(command, info_name="spillway")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"{page}: there is no command '{words[0]}'"
        command, words = found, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    command.make_context(command.name, list(words), parent=context.parent)
    if command.name == "bench":
        assert BENCHMARKS.find(words[0]).name == words[0]
    elif command.name == "reproduce":
        assert EXPERIMENTS.find(words[0])
    for word in words:
        assert not word.startswith("examples/") or (ROOT / word).exists(), f"{page}: no {word}"


def test_every_target_that_a_page_names_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
    named = {target for page in pages for target in MAKE.findall(page.read_text())}
    assert named <= targets
    assert len(named) > 5
