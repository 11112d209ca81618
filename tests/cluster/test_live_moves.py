"""A query moves, changes and moves back on real nodes, also when one dies meanwhile: every window
comes out once, with all of its tuples."""

import signal
from pathlib import Path

import psutil
import pytest
from live import signal_tree

from spillway_lab.benchmarks.kept_results import kept
from spillway_lab.benchmarks.migrate_run import (
    OTHER_SQL,
    QUERY,
    RATE,
    WINDOW_S,
    Cluster,
    cluster_in,
    settled,
)

WITHIN_S = 300.0


def moved_to(cluster: Cluster, generation: int) -> None:
    cluster.wait(lambda now: settled(now) and now["generation"] == generation, WITHIN_S)


def node_of(cluster: Cluster, name: str) -> psutil.Process:
    found = [
        process
        for process in psutil.process_iter(["cmdline", "create_time"])
        if str(cluster.file) in (process.info["cmdline"] or [])
        and (process.info["cmdline"] or [])[-1] == name
    ]
    return max(found, key=lambda process: process.info["create_time"])


@pytest.mark.timeout(1200)
def test_whatever_moves_changes_or_dies_each_window_comes_out_once_and_whole(
    tmp_path: Path,
) -> None:
    with cluster_in(tmp_path) as cluster:
        cluster.wait(settled, WITHIN_S)
        cluster.ask("cluster", "move", QUERY, cluster.other_node())
        moved_to(cluster, 2)

        other = tmp_path / "other.sql"
        other.write_text(OTHER_SQL)
        cluster.ask("query", "change", QUERY, "--sql", str(other), "--partitions", "3")
        moved_to(cluster, 3)

        cluster.ask("query", "change", QUERY, "--back")
        cluster.wait(lambda now: now.get("next") is not None, WITHIN_S)
        signal_tree(node_of(cluster, cluster.query()["next"]["node"]), signal.SIGKILL)
        moved_to(cluster, 4)
        cluster.wait(lambda _: any(r.generation == 4 for r in kept(cluster.results)), WITHIN_S)

        results = list(kept(cluster.results))
    assert {result.generation for result in results} == {1, 2, 3, 4}
    versions = {result.generation: "newest" in result.row for result in results}
    assert versions == {1: False, 2: False, 3: True, 4: False}
    counts: dict[int, list[int]] = {}
    for result in results:
        counts.setdefault(result.row["start_us"], []).append(result.row["n"])
    first, last = min(counts), max(counts)
    due = range(first + WINDOW_S * 1_000_000, last + 1, WINDOW_S * 1_000_000)
    assert {
        start: counts.get(start) for start in due if counts.get(start) != [WINDOW_S * RATE]
    } == {}
