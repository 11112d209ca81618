"""`open-pages`: what 50 open pages and a scrape a second cost a run that has no time to spare.

An overloaded query keeps as much as it can; minutes with pages and without take turns. The pages
are threads of a process of its own, at the system's lowest priority, because readers are usually on
other machines: what is left is what serving costs.
"""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.session.pools import cores_here
from spillway.report import Table
from spillway.watch.serving import Door, opened_door, served
from spillway_lab.benchmarks.flow_runs import batches_of, running, watch
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

PAGES = 50
PER_S_AND_CORE = 5_000_000  # more than a core takes of this query
MOST_COST = 0.02


def flow_of(seed: int, cores: int) -> Flow:
    options = {"rate": PER_S_AND_CORE * cores, "seed": seed}
    stream = {"source": "synthetic", "options": options, "event_time": "event_time"}
    sql = (
        "SELECT window(event_time, '10 seconds') AS period, key, avg(value) AS mean FROM readings"
        " GROUP BY window(event_time, '10 seconds'), key"
    )
    query = {"class": "gold", "mode": "update", "sink": {"type": "noop"}, "sql": sql}
    return Flow.model_validate(
        {
            "streams": {"readings": stream},
            "classes": {"gold": {"delay": "2s"}},
            "queries": {"means": {**query, "combine": False}},
        }
    )


def run(setup: BenchSetup) -> BenchReport:
    warm_s, part_s, pairs = (20.0, 20.0, 2) if setup.quick else (60.0, 60.0, 6)
    kept: dict[bool, list[float]] = {False: [], True: []}
    setup.progress("starting", 0.02)
    with (
        tempfile.TemporaryDirectory(prefix="spillway-door-") as root,
        running(flow_of(setup.seed, cores_here())) as application,
        served(application, "open-pages", _door(Path(root))) as url,
    ):
        watch(application, time.time() + warm_s)
        for number in range(2 * pairs):
            is_open = number % 4 in (1, 2)  # closed, open, open, closed: a drift cancels
            setup.progress("pages open" if is_open else "no page", 0.1 + 0.45 * number / pairs)
            with pages(url) if is_open else nullcontext():
                kept[is_open].append(_kept_per_s(application, part_s))
    return judged(kept[False], kept[True])


def _door(root: Path) -> Door:
    door = opened_door(root, "127.0.0.1:0", None)
    assert door is not None
    return door


def judged(closed: list[float], opened: list[float]) -> BenchReport:
    """By pairs of neighbours: what was kept with pages over what was kept without."""
    costs = [1.0 - with_pages / without for without, with_pages in zip(closed, opened, strict=True)]
    cost, spread = mean(costs), stdev(costs) / math.sqrt(len(costs)) if len(costs) > 1 else math.inf
    failures = []
    if cost - 2.0 * spread > MOST_COST:
        failures.append(f"{PAGES} open pages cost {cost:.1%} of the throughput: at most 2 %")
    rows = [
        (f"{a:,.0f}", f"{b:,.0f}", f"{c:+.1%}")
        for a, b, c in zip(closed, opened, costs, strict=True)
    ]
    return BenchReport(
        results={"cost": cost, "standard_error": spread, "closed": closed, "opened": opened},
        tables=(
            Table(
                title=f"{PAGES} pages cost {cost:.1%}, give or take {spread:.1%}",
                columns=("kept/s without pages", "with", "cost"),
                rows=rows,
            ),
        ),
        failures=tuple(failures),
    )


def _kept_per_s(application: Application, seconds: float) -> float:
    """By batches: the time from the end of the one before the first to the end of the last."""
    from_s = time.time()
    watch(application, from_s + seconds)
    batches = batches_of(application, "gold", from_s, time.time())
    span_s = batches[-1].ended_s - batches[0].ended_s
    return sum(batch.kept_tuples for batch in batches[1:]) / span_s


@contextmanager
def pages(url: str) -> Iterator[None]:
    """Open until the end of the block."""
    command = ["nice", "-n", "19", sys.executable, "-m", "spillway_lab.benchmarks.pages", url]
    readers: Any = subprocess.Popen([*command, str(PAGES)], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        readers.stdin.close()
        readers.wait()


BENCHMARKS = (
    Benchmark(
        name="open-pages",
        title="50 open pages and a scrape a second beside an overloaded run on Spark",
        run=run,
        plants=("spark",),
    ),
)
