"""A query without state and one over windows move on and on between real nodes, and nodes are
killed meanwhile: every row and every window comes out once, and whole."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chaos import FLOW
from live import START_S, Live, settled, signal_tree
from two_queries import OTHER_ROWS, differences, environment, kept


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    for name, value in environment(tmp_path / "results").items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    made = Live(tmp_path, flow=FLOW)
    try:
        yield made
    finally:
        made.close()


def move(live: Live, query: str) -> str:
    """To the other node, which it returns; the move has begun."""
    now = live.status()
    to = next(node for node in now["nodes"] if node != now["queries"][query]["node"])
    live.ask("cluster", "move", query, to, "--cluster", str(live.file))
    return str(to)


@pytest.mark.timeout(1500)
def test_moves_there_and_back_and_a_node_killed_in_the_middle(live: Live, tmp_path: Path) -> None:
    live.coordinator()
    live.await_(settled, START_S)
    move(live, "rows")
    live.await_(partial(_has, "rows", 2), START_S)
    move(live, "rows")
    move(live, "counts")
    live.await_(partial(_has, "rows", 3), START_S)
    live.await_(partial(_has, "counts", 2), START_S)
    said = live.status()["queries"]["rows"]
    assert said["came_by"] == "moved while it ran"
    assert said["pause_s"] is not None

    other = tmp_path / "other.sql"
    other.write_text(OTHER_ROWS)
    live.ask("query", "change", "rows", "--sql", str(other), "--cluster", str(live.file))
    live.await_(lambda now: now["queries"]["rows"]["next"] is not None, START_S)
    victim = live.status()["queries"]["rows"]["node"]
    signal_tree(live.node(victim), signal.SIGKILL)
    live.await_(partial(_has, "rows", 4), START_S)
    live.ask("cluster", "stop", str(live.file), "--wait", "120s")

    audit = json.loads(live.ask("cluster", "audit", str(live.file), "--json"))
    assert audit["exact"], audit
    tuples, wrong = differences(tmp_path / "results")
    assert wrong == []
    assert tuples > 0
    versions = {g: "other" in row for g, row in kept(tmp_path / "results", "rows")}
    assert versions == {1: False, 2: False, 3: False, 4: True}


def _has(query: str, generation: int, now: dict[str, Any]) -> bool:
    return settled(now) and now["queries"][query]["generation"] == generation
