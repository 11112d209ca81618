from pathlib import Path

import pytest

from spillway.check.pages import BLOCKS, blocks_in, refreshed
from spillway.errors import SpillwayError

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if blocks_in(path.read_text()))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_says_what_the_declarations_say(path: Path) -> None:
    """If this fails: make docs"""
    page = path.read_text()
    assert refreshed(page) == page


def test_every_table_is_on_one_page() -> None:
    found = [name for path in PAGES for name in blocks_in(path.read_text())]
    assert sorted(found) == sorted(BLOCKS)


def test_a_stale_table_is_made_anew_and_the_text_around_it_stays() -> None:
    page = "before\n<!-- options:begin gate -->\n| stale |\n<!-- options:end -->\nafter\n"
    made = refreshed(page)
    assert made.startswith("before\n<!-- options:begin gate -->\n| option |")
    assert made.endswith("<!-- options:end -->\nafter\n")
    assert "stale" not in made
    assert refreshed(made) == made


def test_a_marker_that_names_no_table_is_refused() -> None:
    with pytest.raises(SpillwayError, match="did you mean 'gate'"):
        refreshed("<!-- options:begin gates -->\n<!-- options:end -->")
