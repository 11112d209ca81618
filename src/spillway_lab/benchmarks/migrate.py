"""`migrate`: what a reader of the results sees while a query moves or changes, on a real cluster.

One query over windows of a second on two nodes. It moves while it runs, changes its text and the
number of its state's partitions while it runs, and moves by stop and start; beside it plain Spark
stops a query and starts it again on its checkpoint, in the same session.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.report import Table
from spillway_lab.benchmarks.kept_results import FOLDER, Result, kept
from spillway_lab.benchmarks.migrate_figures import Span, figures
from spillway_lab.benchmarks.migrate_run import (
    OTHER_SQL,
    QUERY,
    RATE,
    WINDOW_S,
    Cluster,
    cluster_in,
    settled,
)
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

CALM_S, AFTER_S, WARM_S = 30.0, 10.0, 30.0
LAST_S = 5.0  # until the last results that are due have come
PARTITIONS = 3
LIVE = ("unimico", "change")

Marks = list[tuple[float, float]]  # time, and processor time used by then


def run(setup: BenchSetup) -> BenchReport:
    calm_s = CALM_S / 2.0 if setup.quick else CALM_S
    with tempfile.TemporaryDirectory(prefix="spillway-migrate-") as folder:
        setup.progress("two nodes", 0.0)
        with cluster_in(Path(folder)) as cluster:
            results = _moved(cluster, calm_s, setup)
    with tempfile.TemporaryDirectory(prefix="spillway-migrate-") as folder:
        setup.progress("plain Spark", 0.8)
        results["plain_spark_restart"] = _plain(Path(folder), calm_s)
    failures = tuple(
        f"{name}: {figure} is {found[figure]:g}"
        for name, found in results.items()
        for figure, most in (("lost", 0), ("doubled", 0), ("gap_s", 1.0 if name in LIVE else 1e9))
        if found[figure] > most
    )
    return BenchReport(results=results, tables=(_table(results),), failures=failures)


def _moved(cluster: Cluster, calm_s: float, setup: BenchSetup) -> dict[str, Any]:
    """Three moves of one query, each after a calm part of its own."""
    cluster.wait(settled)
    time.sleep(WARM_S)
    marked: dict[str, Marks] = {}
    for number, name in enumerate(("unimico", "change", "restart"), start=1):
        setup.progress(name, 0.2 * number)
        marks = [(time.time(), cluster.cpu_s())]
        time.sleep(calm_s)
        marks.append((time.time(), cluster.cpu_s()))
        _ask(cluster, name)
        time.sleep(AFTER_S)
        marked[name] = [*marks, (time.time(), cluster.cpu_s())]
    time.sleep(LAST_S)
    results = list(kept(cluster.results))
    calm = [(marks[0][0], marks[1][0]) for marks in marked.values()]
    return {name: _figures(results, calm, marks) for name, marks in marked.items()}


def _ask(cluster: Cluster, name: str) -> None:
    """Returns when it is done."""
    before, node = cluster.query(), cluster.other_node()
    if name == "change":
        text = cluster.root / "other.sql"
        text.write_text(OTHER_SQL)
        cluster.ask("query", "change", QUERY, "--sql", str(text), "--partitions", str(PARTITIONS))
        cluster.wait(lambda now: settled(now) and now["generation"] != before["generation"])
        return
    cluster.ask("cluster", "move", QUERY, node, *(("--restart",) if name == "restart" else ()))
    cluster.wait(lambda now: settled(now) and now["node"] == node)
    is_live = cluster.query()["generation"] != before["generation"]
    if is_live != (name in LIVE):
        raise SpillwayError(f"{name}: the query moved otherwise: {cluster.query()['reason']}")


def _plain(folder: Path, calm_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "spillway_lab.benchmarks.migrate_plain", str(folder)]
    environment = {**os.environ, FOLDER: str(folder)}
    done = subprocess.run(
        [*command, str(calm_s)], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode != 0:
        raise SpillwayError(f"plain Spark did not run: {done.stderr[-1000:]}")
    marks: Marks = json.loads(done.stdout.splitlines()[-1])
    return _figures(list(kept(folder)), [(marks[0][0], marks[1][0])], marks)


def _figures(results: list[Result], calm: list[Span], marks: Marks) -> dict[str, Any]:
    (begun_s, begun), (asked_s, asked), (done_s, done) = marks
    usual = (asked - begun) / (asked_s - begun_s)
    found = figures(results, calm, (asked_s, done_s), window_s=WINDOW_S, tuples=RATE)
    return {**found, "overlap_cpu_s": max(0.0, done - asked - usual * (done_s - asked_s))}


def _table(results: dict[str, Any]) -> Table:
    rows = [
        (
            name,
            f"{found['gap_s']:.2f} s",
            found["lost"],
            found["doubled"],
            f"{found['overlap_cpu_s']:.1f} s",
        )
        for name, found in results.items()
    ]
    columns = ("", "gap", "lost", "doubled", "processor time beyond calm")
    return Table(title="a query moves", columns=columns, rows=rows)


BENCHMARKS = (
    Benchmark(name="migrate", title="gaps of moves and changes of a running query", run=run),
)
