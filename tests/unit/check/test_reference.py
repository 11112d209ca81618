from pathlib import Path

from spillway.check.reference import refreshed

PAGE = Path(__file__).parents[3] / "docs" / "flow.md"


def test_the_page_about_flows_says_what_the_declarations_say() -> None:
    """If this fails: python -m spillway.check.reference docs/flow.md"""
    page = PAGE.read_text()
    assert refreshed(page) == page
