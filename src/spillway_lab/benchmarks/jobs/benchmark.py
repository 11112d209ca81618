"""`jobs`: typical jobs with the drop-in on a real broker, beside plain Spark's own Kafka source.

Each side has a JVM of its own, that starts cold, and a topic of its own with the same records at
the same pace: on two cores they would disturb each other.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.report import Table
from spillway_lab.benchmarks.jobs import flows
from spillway_lab.benchmarks.jobs.catalog import JOBS
from spillway_lab.benchmarks.jobs.side import Place, run_side, scratch
from spillway_lab.benchmarks.logs import KAFKA_JARS_VARIABLE, KAFKA_VARIABLE
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

COMPARED = "plain: Spark's own Kafka source"
NAMES = (*(job.name for job in JOBS), *flows.NAMES)

Row = dict[str, Any]


def run(setup: BenchSetup) -> BenchReport:
    servers, jars = os.environ.get(KAFKA_VARIABLE), os.environ.get(KAFKA_JARS_VARIABLE)
    names = [setup.only] if setup.only else list(NAMES)
    if servers is None:
        raise SpillwayError(
            f"'jobs' needs a Kafka broker: set {KAFKA_VARIABLE}=host:port, or run it through"
            " tests/kafka/with_broker.py"
        )
    results: dict[str, Row] = {}
    for place, name in enumerate(names):
        setup.progress(f"{name}: gate", place / len(names))
        results[name] = row = _side(name, servers, None)
        if jars and name not in flows.EXAMPLES:
            setup.progress(f"{name}: plain Spark", (place + 0.5) / len(names))
            row["plain"] = _side(name, servers, jars)
    return BenchReport(
        results=results,
        tables=(_table(results, COMPARED if jars else _no_jars()),),
        details={"plain": COMPARED if jars else _no_jars()},
        failures=failures(results),
    )


def failures(results: dict[str, Row]) -> tuple[str, ...]:
    """What may never be, and what was shed although plain Spark keeps up."""
    found = []
    for name, row in results.items():
        plain = row.get("plain")
        if "error" in row:
            found.append(f"{name}: ended with: {row['error']}")
        if row["doubled"]:
            found.append(f"{name}: {row['doubled']} results came out twice")
        if plain is not None and keeps_up(plain) and row["shed"]:
            found.append(
                f"{name}: {row['shed']:,} of {row['offered']:,} shed, plain Spark keeps up"
            )
        elif plain is not None and keeps_up(plain) and row["wrong"]:
            found.append(f"{name}: {row['wrong']:,} results are wrong, and none of plain Spark's")
    return tuple(found)


def keeps_up(plain: Row) -> bool:
    """It read everything, soon enough to be judged, and its results are right."""
    return "error" not in plain and not plain["unread"] and not plain["wrong"]


def in_a_new_process(call: Any, *given: Any) -> Any:
    """With a JVM of its own, which starts cold."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(call, *given).result()


def _side(name: str, servers: str, jars: str | None) -> Row:
    with scratch() as folder:
        place = Place(servers=servers, jars=jars, folder=Path(folder))
        call = flows.run_flow if name in flows.NAMES else run_side
        found: Row = in_a_new_process(call, name, place)
        return found


def _no_jars() -> str:
    return f"no comparison: {KAFKA_JARS_VARIABLE} names no jars of Spark's own Kafka source"


def _table(results: dict[str, Row], compared: str) -> Table:
    figures = ("offered", "shed", "wrong", "doubled", "delay_s", "p99_s")
    return Table(
        title=f"typical jobs with the drop-in, delay 2 s; {compared}",
        columns=("job", *figures, "plain wrong", "plain delay_s"),
        rows=[
            (
                name,
                *(row.get(figure) for figure in figures),
                row.get("plain", {}).get("wrong"),
                row.get("plain", {}).get("delay_s"),
            )
            for name, row in results.items()
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="jobs",
        title="typical jobs with the drop-in on a real broker, beside Spark's own Kafka source",
        run=run,
        parts=NAMES,
    ),
)
