"""A query that a node gave up is tried again there: a broker that was away may be back."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toys import MemoryLog

from spillway.errors import SpillwayError
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.node import Node


class ToyApplication:
    """Its queries start once `fails` is over."""

    def __init__(self) -> None:
        self.fails, self.tried = True, 0
        self.classes = {"default": SimpleNamespace(priority=0)}

    def add(self, name: str, query: object) -> None:
        self.tried += 1
        if self.fails:
            raise SpillwayError(f"query '{name}' does not start: the broker is away")

    def remove(self, name: str, wait_s: float) -> None: ...

    def supervise(self) -> None: ...

    def event(self, kind: str, **values: object) -> None: ...


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    place: Any = SimpleNamespace(
        name="toys", file=Path("toys.yaml"), reports=MemoryLog, assignments=MemoryLog
    )
    made: Any = Node("a", place, lambda text: None)
    made._application = ToyApplication()
    made._folder = SimpleNamespace(given={})
    made._classes = SimpleNamespace(follow=lambda duties: None)
    made._handing = SimpleNamespace(
        may_start=lambda run, duty: True, look=lambda *given: False, forget=lambda run: None
    )
    made._lease = SimpleNamespace(lapsed=lambda now_s: False, holds=lambda now_s: True)
    monkeypatch.setattr(made, "_beat_now", lambda: None)
    body = {"sql": "SELECT * FROM ticks", "sink": {"type": "noop"}}
    duty = Duty(name="q", epoch=1, generation=1, query=body, reason="")
    made.duties.queries = {"q": duty}
    found: Node = made
    return found


def test_not_at_once_but_after_a_while(node: Node) -> None:
    application: Any = node._application
    for _ in range(3):
        node.carry_out(time.monotonic())
    assert application.tried == 1
    assert "the broker is away" in node._failed["q"][0]
    node._failed["q"] = node._failed["q"][0], 0.0
    application.fails = False
    node.carry_out(time.monotonic())
    node.carry_out(time.monotonic())
    assert application.tried == 2
    assert (node._failed, node._busy) == ({}, {"q": 1})


def test_what_is_no_duty_any_more_is_forgotten(node: Node) -> None:
    node.carry_out(time.monotonic())
    assert "q" in node._failed
    node.duties.queries = {}
    node.carry_out(time.monotonic())
    assert node._failed == {}
