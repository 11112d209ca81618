"""The page in a real browser, over a flow in virtual time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from virtual import SECRET, VirtualWatch

from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer
from spillway.watch.tokens import Token

SIZES = {"desk": (1440, 900), "phone": (390, 844)}


@dataclass
class Open:
    """A page, and all that it said and asked for."""

    page: Any
    watched: VirtualWatch
    url: str
    said: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, and the page see it."""
        self.watched.advance(seconds)
        self.page.wait_for_timeout(4500)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    watched = VirtualWatch(tmp_path)
    watched.advance(50.0)
    tokens = (Token(name="ada", secret=SECRET),)
    server = WatchServer(watched, bound(Address(host="127.0.0.1", port=0)), tokens)
    server.start()
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    found = Open(page=page, watched=watched, url=server.url)
    page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
    page.on("request", lambda request: found.asked.add(request.url))
    page.goto(server.url)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("svg.chart path.delay")
    yield found
    context.close()
    server.stop()


def test_a_delay_crosses_its_target_and_comes_back(opened: Open) -> None:
    assert opened.text("#headline") == "Every class holds its target"
    opened.advance(40.0)  # into the burst
    card = '[aria-label="class bronze"]'
    assert opened.page.get_attribute(card, "data-health") in ("shedding", "late")
    assert "trends" in opened.text("#why")
    assert opened.page.locator("#network .cause").count() > 0
    assert "borrows" in opened.text(card)
    over = opened.page.locator("#curves .row").nth(2).locator("path.over")
    opened.advance(30.0)
    assert over.count() == 1  # where it was above the target line
    opened.advance(80.0)  # past the burst
    assert opened.text("#headline") == "Every class holds its target"
    assert over.count() == 1  # and the curve remembers


def test_nothing_goes_wrong_and_nothing_comes_from_elsewhere(opened: Open) -> None:
    opened.advance(30.0)
    for seconds in ("300", "86400", "900"):
        opened.page.select_option("#window", seconds)
        opened.page.wait_for_timeout(400)
    opened.page.click("#theme")
    assert [line for line in opened.said if not line.startswith("debug")] == []
    assert {url for url in opened.asked if not url.startswith(opened.url)} == set()


def test_a_target_is_changed_with_a_token_and_takes_effect(opened: Open) -> None:
    page = opened.page
    page.click("#steer")
    page.fill("#ask input", "wrong")
    page.click("#ask button.primary")
    page.wait_for_selector("#ask .bad:not(:empty)")
    page.fill("#ask input", SECRET)
    page.click("#ask button.primary")
    page.wait_for_selector("#settings[open]")
    delay = page.locator("#settings fieldset", has_text="gold").locator("input").first
    assert delay.input_value() == "p99 3s"
    delay.fill("soon")
    page.click("#settings button.primary")
    page.wait_for_selector("#settings .bad")
    assert "cannot become 'soon'" in opened.text("#settings .bad")
    delay.fill("p99 2s")
    page.click("text=Preview a new target")
    page.wait_for_selector("text=the flow would have shed", timeout=90_000)
    page.click("#settings button.primary")
    page.wait_for_selector("#settings", state="hidden")
    opened.advance(5.0)
    gold = opened.text('[aria-label="class gold"]')
    assert "target 2 s" in gold
    assert "delay set to p99 2s by ada" in gold
    assert "gold.delay is p99 2s (was p99 3s) by ada" in opened.text("#said")
    assert opened.watched.host.control.classes["gold"].target.delay_s == 2.0
    page.click("#steer")
    page.click('#settings button[aria-label="clear gold.delay"]')
    opened.advance(2.0)
    assert "target 3 s" in opened.text('[aria-label="class gold"]')


def test_all_of_it_can_be_done_by_keyboard(opened: Open) -> None:
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"window", "theme", "steer", "SUMMARY", "svg"} <= reached
    page.locator("svg.chart").first.focus()
    page.keyboard.press("ArrowLeft")
    label = str(page.locator("svg.chart").first.get_attribute("aria-label"))
    assert re.search(r"Delay: \d+:\d+:\d+", label), label


def test_it_can_be_heard(opened: Open) -> None:
    tree = str(opened.page.locator("body").aria_snapshot())
    for word in ("Every class holds its target", "holds its target", "table", "class gold"):
        assert word in tree
    unnamed = opened.page.locator("svg[role=img]:not([aria-label])")
    assert unnamed.count() == 0


@pytest.mark.parametrize("size", SIZES)
def test_nothing_jumps_and_nothing_is_cut_off(opened: Open, size: str) -> None:
    width, height = SIZES[size]
    page = opened.page
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(500)
    places = "[...document.querySelectorAll('main section')].map((s) => s.offsetTop)"
    before = page.evaluate(places)
    opened.advance(45.0)  # into the burst: other words, other numbers
    assert page.evaluate(places) == before
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_hour_is_drawn_without_lag(opened: Open) -> None:
    opened.watched.advance(600.0)
    opened.page.select_option("#window", "3600")
    opened.page.wait_for_timeout(2500)
    points = opened.page.locator("path.offered").first.get_attribute("d")
    assert len(points.split("L")) <= 460  # however long it ran


def test_a_flow_that_ends_is_said(opened: Open, chromium: Any) -> None:
    opened.page.route("**/api/events", lambda route: route.abort())
    opened.page.reload()
    opened.page.wait_for_selector('#live[data-on="no"]')
    assert opened.text("#live") == "no answer"
