"""What pages name in back ticks, import or link to is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in TOP), *sorted(DOCS.rglob("*.md"))]

# A path is named as seen from one of these.
SEEN_FROM = ("", "src", "src/spillway", "src/spillway/cluster", "src/spillway/hosts/spark")
EXAMPLES = {
    "dead_letters/GATE/BEGAN",
    "spillway/ledger",
    "spillway/ledger.jsonl",
    "src/spillway/gate/shedders/spread.py",
    "streams/hot",
}

QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
DOTTED = re.compile(r"(?:spillway|spillway_lab|pyspark_spillway)(?:\.\w+)+")
IMPORT = re.compile(
    r"^\s*from ((?:spillway|spillway_lab)(?:\.\w+)*) import ([\w, ]+)", re.MULTILINE
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def exists(path: str) -> bool:
    return any((ROOT / seen_from / path).exists() for seen_from in SEEN_FROM)


def missing_paths(text: str) -> Iterator[str]:
    for quoted in QUOTED.findall(text):
        is_path = "/" in quoted and PATH.fullmatch(quoted) and quoted not in EXAMPLES
        if is_path and not exists(quoted):
            yield quoted


def missing_names(text: str) -> Iterator[str]:
    quoted = [name for part in QUOTED.findall(text) for name in DOTTED.findall(part)]
    imported = [
        f"{module}.{name.strip()}"
        for module, names in IMPORT.findall(text)
        for name in names.split(",")
    ]
    return (name for name in (*quoted, *imported) if not is_defined(name))


def is_defined(name: str) -> bool:
    """A module, a package, or what a module defines at its top."""
    place, parts = ROOT / "src", name.split(".")
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if not parts:
        return True
    file = place / f"{parts[0]}.py"
    if not file.exists():
        return is_at_top((place / "__init__.py").read_text(), parts[0])
    return len(parts) == 1 or is_at_top(file.read_text(), parts[1])


def is_at_top(text: str, name: str) -> bool:
    made = rf"^(?:def|class) {name}\b|^{name}\b.*=|^(?:from .* )?import .*\b{name}\b"
    return re.search(made, text, re.MULTILINE) is not None


def broken_links(page: Path, text: str) -> Iterator[str]:
    for link in LINK.findall(text):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (heading and heading not in anchors_of(target.read_text())):
            yield link


def anchors_of(text: str) -> set[str]:
    """As GitHub makes them."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(text))
    return {title.replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    found = [*missing_paths(text), *missing_names(text), *broken_links(page, text)]
    assert not found, f"{page.relative_to(ROOT)} names what is not there: {', '.join(found)}"


def test_the_index_has_every_page() -> None:
    linked = set(LINK.findall((DOCS / "README.md").read_text()))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


def test_examples_are_named_on_a_page() -> None:
    quoted = {name for page in PAGES for name in QUOTED.findall(page.read_text())}
    assert quoted >= EXAMPLES


def test_a_stale_name_is_found() -> None:
    page = (
        "`plants/sim.py` `spillway.queries.costs` `spillway.lines.nothing` `spillway.lines.append`"
    )
    assert list(missing_paths(page)) == ["plants/sim.py"]
    assert list(missing_names(page)) == ["spillway.queries.costs", "spillway.lines.nothing"]
    assert list(
        broken_links(DOCS / "gate.md", "[a](logs.md#nowhere) [b](gone.md) [c](logs.md)")
    ) == [
        "logs.md#nowhere",
        "gone.md",
    ]
