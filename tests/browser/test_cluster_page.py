"""The coordinator's page in a real browser: a real control log, nodes that report as told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import PAGE, WatchedCluster
from virtual import SECRET

from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer
from spillway.watch.tokens import Token

SIZES = {"desk": (1440, 900), "phone": (390, 844)}


class Seen:
    def __init__(self, chromium: Any, folder: Path) -> None:
        self.cluster = WatchedCluster(folder)
        tokens = (Token(name="ada", secret=SECRET),)
        address = bound(Address(host="127.0.0.1", port=0))
        self.server = WatchServer(self.cluster.watch, address, tokens)
        self.server.start()
        self.cluster.placed()
        self.context = chromium.new_context(viewport={"width": 1440, "height": 900})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.add(request.url))
        self.page.goto(self.server.url)
        self.page.wait_for_selector("#picture rect.node")

    def close(self) -> None:
        self.context.close()
        self.server.stop()
        self.cluster.close()


@pytest.fixture
def seen(chromium: Any, tmp_path: Path) -> Iterator[Seen]:
    made = Seen(chromium, tmp_path)
    yield made
    made.close()


def test_a_cluster_is_a_picture_with_the_way_to_each_node(seen: Seen) -> None:
    page = seen.page
    assert page.locator("#picture rect.node").count() == 2
    said = str(page.get_attribute("#picture svg", "aria-label"))
    assert "node-1 is running" in said
    assert "finds" in said
    assert page.locator("#picture path.edge").count() == 1  # what finds writes keeps reads
    assert page.locator("#nodes tbody tr").count() == 2
    assert page.get_attribute("#nodes a >> nth=0", "href") == PAGE
    assert f"Led by {seen.cluster.coordinating.me}" in page.inner_text("#led")
    assert "2 nodes" in page.inner_text("#facts")


def test_a_move_is_an_arrow_until_it_is_done(seen: Seen) -> None:
    page = seen.page
    origin = next(q.node for q in seen.cluster.watch.look().queries if q.name == "counts")
    assert origin is not None
    there = "node-1" if origin == "node-2" else "node-2"
    seen.cluster.stuck.add(origin)
    seen.cluster.move("counts", there)
    page.wait_for_selector("#picture path.move", state="attached", timeout=90_000)
    assert f"counts goes from {origin} to {there}" in page.inner_text("#led")
    seen.cluster.stuck.clear()
    page.wait_for_selector("#picture path.move", state="detached", timeout=90_000)
    page.wait_for_selector(f"#said >> text=counts runs on {there}", timeout=90_000)


def test_a_target_of_the_whole_cluster_is_changed_with_a_token(seen: Seen) -> None:
    page = seen.page
    page.click("#steer")
    page.fill("#ask input", SECRET)
    page.click("#ask button.primary")
    page.wait_for_selector("#settings[open]")
    assert page.locator("#settings fieldset").count() == 2  # what only one driver has is not there
    delay = page.locator("#settings fieldset", has_text="gold").locator("input").first
    delay.fill("p99 2s")
    page.click("#settings button.primary")
    page.wait_for_selector("#settings", state="hidden", timeout=90_000)
    page.wait_for_selector('[aria-label="class gold"] >> text=target 2 s', timeout=90_000)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut_off_and_nothing_is_said(
    seen: Seen, size: str, theme: str, tmp_path: Path
) -> None:
    width, height = SIZES[size]
    page = seen.page
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(1500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unnamed = page.locator("svg[role=img]:not([aria-label])")
    assert unnamed.count() == 0
    page.screenshot(path=tmp_path / f"cluster-{size}-{theme}.png", full_page=True)
    assert [line for line in seen.said if not line.startswith("debug")] == []
    assert {url for url in seen.asked if not url.startswith(seen.server.url)} == set()
