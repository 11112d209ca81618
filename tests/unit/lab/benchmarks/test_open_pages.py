"""What open pages cost: the judgement, and that the readers read."""

import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "watch"))

from virtual import TOKENS, VirtualWatch

from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer
from spillway_lab.benchmarks import open_pages


def test_a_cost_is_by_neighbours_and_must_be_sure_to_be_a_complaint() -> None:
    steady = open_pages.judged([100.0, 200.0, 100.0], [99.0, 198.0, 99.0])
    assert steady.results["cost"] == pytest.approx(0.01)
    assert steady.failures == ()
    dear = open_pages.judged([100.0, 200.0, 100.0], [95.0, 191.0, 95.0])
    assert "cost 4.8% of the throughput" in dear.failures[0]
    noisy = open_pages.judged([100.0, 200.0, 100.0], [130.0, 150.0, 80.0])
    assert noisy.failures == ()


def test_pages_listen_ask_for_curves_and_scrape_until_they_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    watched = VirtualWatch(tmp_path)
    server = WatchServer(watched, bound(Address(host="127.0.0.1", port=0)), TOKENS)
    handled = server._service.app

    async def noted(scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]
        asked.append(scope.get("path", ""))
        await handled(scope, receive, send)  # type: ignore[arg-type]

    server._server.config.app = noted
    server.start()
    try:
        monkeypatch.setattr(open_pages, "PAGES", 3)
        with open_pages.pages(server.url):
            ends_s = time.monotonic() + 60.0
            wanted = {"/api/events": 3, "/api/history": 3, "/metrics": 2}
            while any(asked.count(path) < times for path, times in wanted.items()):
                assert time.monotonic() < ends_s, asked
                time.sleep(0.1)
    finally:
        server.stop()
