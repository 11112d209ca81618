"""Nodes and leaders are killed, frozen and drained under real queries: nothing lost, nothing twice.

One long run, because every node takes half a minute to start.
"""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from live import LEASE_S, START_S, Live, doubles, on, settled, signal_tree, tree_of

CONTROLS = ["folder", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=CONTROLS)
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    control = "{type: folder}"
    if request.param == "kafka":
        broker: Any = request.getfixturevalue("kafka_broker")
        control = f"{{type: kafka, brokers: '{broker.bootstrap}', topic: {tmp_path.name}}}"
    made = Live(tmp_path, control)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(900)
def test_kills_freezes_and_moves_lose_nothing_and_double_nothing(live: Live) -> None:
    first = live.coordinator()
    live.coordinator()
    live.await_(settled, START_S)
    where = {name: query["node"] for name, query in live.status()["queries"].items()}
    assert len(set(where.values())) == 2

    # The leader dies: the one that stands by leads.
    leader = live.leader()
    psutil.Process(leader).kill()
    live.await_(lambda now: now["leader"] and f"-{leader}-" not in now["leader"]["id"], 60.0)
    if first.pid == leader:
        first.wait()

    # A move: stopped there, started here, one query only.
    live.ask("cluster", "move", "counts", where["rows"], "--cluster", str(live.file))
    live.await_(on("counts", where["counts"]), START_S)

    # The node that now has both freezes, for longer than its lease; both run elsewhere.
    frozen = live.node(where["rows"])
    asleep = tree_of(frozen)
    signal_tree(frozen, signal.SIGSTOP)
    took_s = live.await_(on("rows", where["rows"]), START_S)
    print(f"taken over {took_s:.1f} s after the freeze")
    assert took_s > LEASE_S
    for process in asleep:
        process.resume()
    time.sleep(2 * LEASE_S)

    # The node that has them is killed as a whole: they come back.
    victim = live.status()["queries"]["rows"]["node"]
    signal_tree(live.node(victim), signal.SIGKILL)
    live.await_(lambda now: settled(now) and _alive(now, victim), START_S)
    time.sleep(5.0)
    live.ask("cluster", "stop", str(live.file), "--wait", "90s")

    audit = json.loads(live.ask("cluster", "audit", str(live.file), "--json"))
    assert audit["exact"], audit
    admitted = {row["query"]: row["admitted"] for row in audit["queries"]}
    ids = [row["id"] for row in live.rows("rows")]
    assert doubles(ids) == []
    assert sorted(ids) == list(range(min(ids), min(ids) + admitted["rows"]))
    windows = [row["w"]["start"] for row in live.rows("counts")]
    assert doubles(windows) == []
    counts = sorted((row["w"]["start"], row["n"]) for row in live.rows("counts"))
    assert {n for _, n in counts[1:]} == {600}, counts


def _alive(now: dict[str, Any], victim: str) -> bool:
    """What was on the killed node runs on a process that is there."""
    places = {query["node"] for query in now["queries"].values()}
    return all(
        node in now["nodes"] and now["nodes"][node].get("reported_s_ago", 99.0) < LEASE_S
        for node in places
    )
