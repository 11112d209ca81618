"""Flows that are shown are right as they stand."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spillway.check.flow_file import load_flow
from spillway.check.plan import plan_of

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
INDENTED = re.compile(r"((?:^(?: {4}.*)?\n)+)", re.MULTILINE)
FENCED = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
WHOLE = ("streams:", "classes:", "queries:")


def flows() -> Iterator[tuple[str, str]]:
    """(page and number, text), of blocks that are a whole flow and leave nothing out."""
    for page in PAGES:
        text = page.read_text()
        blocks = [re.sub(r"^ {4}", "", b, flags=re.MULTILINE) for b in INDENTED.findall(text)]
        blocks += FENCED.findall(text)
        for number, block in enumerate(blocks):
            if all(re.search(f"^{key}", block, re.MULTILINE) for key in WHOLE):
                yield f"{page.name}-{number}", block.replace("url: ...", "url: 'jdbc:x'")


SHOWN = dict(flows())


def test_there_are_some() -> None:
    assert len(SHOWN) >= 2
    assert any(name.startswith("README") for name in SHOWN)


@pytest.mark.parametrize("name", [name for name, text in SHOWN.items() if "..." not in text])
def test_a_flow_on_a_page_is_right(name: str, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(SHOWN[name])
    plan_of(load_flow(file))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_an_example_is_right(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan_of(load_flow(path))
