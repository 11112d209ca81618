"""Two applications of somebody's own, one set of classes, and a coordinator that dies."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from live import Live

from spillway.journal.entries import Event
from spillway.journal.files import read_journal
from spillway.model import Decided

WAIT_S = 300.0
FLOW = """\
classes:
  gold: {{delay: 5s, priority: 6}}
  bronze: {{delay: 5s, priority: 1}}
cluster:
  folder: {root}/run
  control: {control}
  launcher: none
  upper: 0.05  # shares are set wherever anything is wanted
  target: 0.03
  lower: 0.01
  period: 1s
  lease: {lease:g}s
"""


class Application:
    def __init__(self, live: Live, name: str, class_name: str, tuple_s: float) -> None:
        self.name, self.folder = name, live.root / name
        self.folder.mkdir()
        driver = str(Path(__file__).with_name("attached_driver.py"))
        command = [driver, str(live.file), str(self.folder), name, class_name, str(tuple_s)]
        with (self.folder / "driver.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def ask(self, word: str) -> str:
        self.tell(word)
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def batches(self) -> int:
        return int(self.ask("batches").split()[1])

    def goes_on(self) -> None:
        reached = self.batches()
        wait_until(lambda: self.batches() >= reached + 3)

    def journal(self) -> list[Any]:
        return list(read_journal(self.folder / "attached" / "journal.jsonl"))

    def owns(self) -> list[dict[str, float]]:
        found = [e for e in self.journal() if isinstance(e, Event) and e.kind == "owns"]
        return [event.fields["shares"] for event in found]

    def targets(self) -> set[float]:
        return {e.measurement.target.delay_s for e in self.journal() if isinstance(e, Decided)}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.5)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    made = Live(tmp_path, flow=FLOW)
    yield made
    made.close()


@pytest.fixture
def applications(live: Live) -> Iterator[tuple[Application, Application]]:
    made = Application(live, "orders", "gold", 0.0), Application(live, "trends", "bronze", 0.0008)
    yield made
    for each in made:
        each.close()


def asked(address: str) -> Any:
    with urlopen(address, timeout=30) as answer:
        return json.loads(answer.read())


def attached(live: Live) -> dict[str, list[str]]:
    nodes = live.status()["nodes"].items()
    return {name: node["queries"] for name, node in nodes if node["state"] == "attached"}


def test_two_applications_share_classes_and_lose_nothing_with_their_coordinator(
    live: Live, applications: tuple[Application, Application]
) -> None:
    orders, trends = applications
    coordinator = live.coordinator()
    wait_until(lambda: attached(live) == {"orders": ["counts"], "trends": ["counts"]})
    page = (live.root / "run" / "watch").read_text().strip()
    wait_until(lambda: len(asked(f"{page}/api/state")["queries"]) == 2)
    state = asked(f"{page}/api/state")
    assert {query["name"] for query in state["queries"]} == {"orders/counts", "trends/counts"}
    assert all(asked(f"{node['watch']}/healthz")["alive"] for node in state["cluster"]["nodes"])
    # By priority bronze owns a seventh of its machine; of both machines it owns two sevenths, and
    # all that it wants it wants here.
    wait_until(lambda: any(shares["bronze"] > 0.2 for shares in trends.owns()))

    assert "gold.delay is 9s" in live.ask(
        "cluster", "set", "gold.delay=9s", "--cluster", str(live.file)
    )
    wait_until(lambda: 9.0 in orders.targets())
    assert 9.0 not in trends.targets()
    assert "the coordinator says what holds" in orders.ask("target")

    coordinator.send_signal(signal.SIGKILL)
    coordinator.wait()
    orders.goes_on()
    trends.goes_on()
    live.coordinator()
    wait_until(lambda: live.status()["leader"] is not None)
    wait_until(lambda: set(attached(live)) == {"orders", "trends"})

    trends.tell("detach")
    wait_until(lambda: set(attached(live)) == {"orders"})
    trends.goes_on()
