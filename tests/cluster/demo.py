"""`make cluster-demo`: overload, a node started, a query moved and changed while it runs, a node
killed, priorities kept, and an audit.

A query's cost is waiting: every tuple sleeps for a millisecond in the task that reads it. So a node
is full when its slots are, whatever the processors do, and three nodes fit on two cores. Exits with
0 only if everything that it shows has happened and the audit over all ledgers is exact.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from live import START_S, Live, doubles, settled, signal_tree

from spillway_lab.benchmarks.kept_results import FOLDER, KEEP, kept

WINDOW_US, WINDOW_TUPLES = 2_000_000, 100
BY_WINDOW = "FROM readings GROUP BY window(event_time, '2 seconds')"
WAITS = "SELECT id FROM ticks WHERE reflect(''java.lang.Thread'', ''sleep'', 1L) IS NOT NULL"
FLOW = """\
streams:
  ticks:
    source: synthetic
    options: {{rate: 200, columns: "id position, key key(5), event_time time"}}
  readings:
    source: synthetic
    options: {{rate: 50, columns: "id position, event_time time"}}
    event_time: event_time
    watermark: 1s
classes:
  gold: {{delay: 6s, priority: 3}}
  exact: {{delay: 6s, priority: 3, manager: none}}
  low: {{delay: 8s}}
queries:
  gold_1:
    class: gold
    sink: {{type: parquet, path: {root}/gold_1}}
    sql: 'WAITS'
  counts:
    class: exact
    sink: {{type: python, call: 'KEEP', generations: true}}
    sql: "SELECT unix_micros(window.start) AS start_us, count(*) AS n BY_WINDOW"
  low_1: {{class: low, sink: {{type: noop}}, sql: 'WAITS'}}
  low_2: {{class: low, sink: {{type: noop}}, sql: 'WAITS'}}
cluster:
  folder: {root}/run
  control: {control}
  fewest: 2
  most: 3
  lease: {lease:g}s
  upper: 0.6
  target: 0.45
  lower: 0.1
  cooldown: 60s
spark:
  config: {{spark.driver.memory: 600m}}
"""
FLOW = FLOW.replace("WAITS", WAITS).replace("KEEP", KEEP).replace("BY_WINDOW", BY_WINDOW)
OTHER_SQL = f"SELECT unix_micros(window.start) AS start_us, count(*) AS n, max(id) AS m {BY_WINDOW}"
MORE = "queries:\n" + "".join(
    f"  low_{number}: {{class: low, sink: {{type: noop}}, sql: '{WAITS}'}}\n"
    for number in (3, 4, 5)
)
BROKER = "SPILLWAY_KAFKA"


class Watched:
    """What the cluster looked like, again and again, for the picture."""

    def __init__(self, live: Live) -> None:
        self.live, self.begun_s = live, time.monotonic()
        self.seen: list[tuple[float, dict[str, Any]]] = []
        self.marks: list[tuple[float, str]] = []

    def say(self, text: str) -> None:
        self.marks.append((time.monotonic() - self.begun_s, text))
        print(f"{self.marks[-1][0]:6.1f} s  {text}", flush=True)

    def until(self, what: str, holds: Any, within_s: float = START_S) -> dict[str, Any]:
        begun_s = time.monotonic()

        def look(now: dict[str, Any]) -> bool:
            self.seen.append((time.monotonic() - self.begun_s, now))
            return bool(holds(now))

        self.live.await_(look, within_s)
        self.say(f"{what}, after {time.monotonic() - begun_s:.0f} s")
        return self.seen[-1][1]

    def rest(self, seconds: float) -> None:
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            self.seen.append((time.monotonic() - self.begun_s, self.live.status()))
            time.sleep(1.0)


def main(picture: Path) -> int:
    with _live() as live:
        watched = Watched(live)
        live.coordinator()
        live.coordinator()
        watched.say("two coordinators, two nodes: one leads, one stands by")
        watched.until("four queries run on two nodes", settled)
        _move_and_change(watched)

        (live.root / "more.yaml").write_text(MORE)
        live.ask("query", "add", str(live.root / "more.yaml"), "--cluster", str(live.file))
        watched.say("three more queries: more than two nodes carry")
        watched.until("the coordinator has started a third node", _has("node-3"))
        watched.until("and has moved a query to it", lambda now: _on(now, "node-3"))
        watched.until("all queries run", settled)
        watched.rest(10.0)

        victim = live.status()["queries"]["gold_1"]["node"]
        signal_tree(live.node(victim), signal.SIGKILL)
        watched.say(f"{victim}, which has gold_1, is killed with all of its processes")
        watched.until(
            "its queries run elsewhere", lambda now: settled(now) and not _on(now, victim)
        )
        watched.rest(10.0)
        live.ask("cluster", "stop", str(live.file), "--wait", "90s")
        watched.say("stopped")
        _draw(watched, picture)
        return _judged(live)


def _move_and_change(watched: Watched) -> None:
    live, query = watched.live, watched.live.status()["queries"]["counts"]
    to = next(name for name in live.status()["nodes"] if name != query["node"])
    live.ask("cluster", "move", "counts", to, "--cluster", str(live.file))
    watched.say(f"counts moves from {query['node']} to {to} while it runs")
    watched.until(f"{to} puts its results out", _is_version(2))
    (live.root / "other.sql").write_text(OTHER_SQL)
    change = ["query", "change", "counts", "--sql", str(live.root / "other.sql")]
    live.ask(*change, "--partitions", "3", "--cluster", str(live.file))
    watched.say("counts is to have another column, and state in three partitions")
    watched.until("its other version puts results out", _is_version(3))


def _is_version(generation: int) -> Any:
    def holds(now: dict[str, Any]) -> bool:
        return settled(now) and now["queries"]["counts"]["generation"] == generation

    return holds


def _whole_windows(live: Live) -> dict[str, bool]:
    """Of the query that moved and changed, from its first whole window to its last."""
    results = list(kept(live.root / "results"))
    came = Counter(result.row["start_us"] for result in results)
    first, last = min(came), max(came)
    due = range(first + WINDOW_US, last, WINDOW_US)
    whole = {r.row["start_us"] for r in results if r.row["n"] == WINDOW_TUPLES}
    print(f"counts: {len(due)} windows, by versions {sorted({r.generation for r in results})}")
    return {
        "every window of counts came out once": all(came[start] == 1 for start in due),
        "with all of its tuples": whole.issuperset(due),
    }


def _judged(live: Live) -> int:
    audit = json.loads(live.ask("cluster", "audit", str(live.file), "--json"))
    for row in audit["queries"]:
        print(
            f"{row['query']}: offered {row['offered']:,} (twice {row['overlap']:,}) = admitted"
            f" {row['admitted']:,} + shed {row['shed']:,} + pending {row['pending']:,} over"
            f" {row['ledgers']} ledgers"
        )
    [gold] = [row for row in audit["queries"] if row["query"] == "gold_1"]
    ids = [row["id"] for row in live.rows("gold_1")]
    found = {
        "the audit over all ledgers is exact": audit["exact"],
        "gold sheds nothing": gold["shed"] == 0,
        "every admitted tuple of gold is in the sink": len(ids) == gold["admitted"],
        "none is there twice": not doubles(ids),
        **_whole_windows(live),
    }
    for what, holds in found.items():
        print(f"{'holds      ' if holds else 'FALLS SHORT'}  {what}")
    return 0 if all(found.values()) else 1


def _has(node: str) -> Any:
    return lambda now: now["nodes"].get(node, {}).get("state") == "running"


def _on(now: dict[str, Any], node: str) -> bool:
    return any(q["node"] == node and q["state"] == "runs" for q in now["queries"].values())


@contextmanager
def _live() -> Iterator[Live]:
    with tempfile.TemporaryDirectory(prefix="spillway-cluster-") as folder:
        control = "{type: folder}"
        if BROKER in os.environ:
            control = f"{{type: kafka, brokers: '{os.environ[BROKER]}', topic: demo}}"
        results = Path(folder) / "results"
        results.mkdir()
        os.environ[FOLDER] = str(results)
        live = Live(Path(folder), control, FLOW)
        try:
            yield live
        finally:
            live.close()


def _draw(watched: Watched, path: Path) -> None:
    """Which node had which query, and each node's load."""
    from spillway.pictures import label, panels

    figure, (above, below) = panels(2)
    queries = sorted({name for _, now in watched.seen for name in now["queries"]})
    nodes = sorted({name for _, now in watched.seen for name in now["nodes"]})
    for row, query in enumerate(queries):
        for index, node in enumerate(nodes):
            times = [
                at
                for at, now in watched.seen
                if (now["queries"].get(query) or {}).get("node") == node
            ]
            above.plot(times, [row] * len(times), "s", markersize=4, color=f"C{index}")
    above.set_yticks(range(len(queries)), queries)
    label(above, title="where each query runs: " + ", ".join(nodes) + " (in these colours below)")
    for index, node in enumerate(nodes):
        points = [
            (at, now["nodes"][node]["load"]) for at, now in watched.seen if node in now["nodes"]
        ]
        below.plot(*zip(*points, strict=True), color=f"C{index}", label=node)
    for at, _ in watched.marks:
        below.axvline(at, color="grey", linewidth=0.5)
    below.legend()
    above.set_xlim(below.get_xlim())
    label(below, x="seconds", y="load of the node")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/cluster-demo.png")))
