"""`executors`: load steps 1x, 3x, 1x on a real standalone cluster, for every scaling policy.

Eight workers of one core and a query whose cost is waiting, so that this machine's own cores are
not what limits it. The peer is Spark's dynamic allocation, in the same run.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spillway.cluster.scaling.catalog import POLICIES
from spillway.report import Progress, Table
from spillway_lab.benchmarks.executors_judged import Steps
from spillway_lab.benchmarks.executors_run import (
    COST_S,
    PEER,
    RATE_PER_S,
    TARGET_S,
    WORKERS,
    Lengths,
    measured,
    session,
)
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.standalone import standalone

JUDGED = "true-rate"
MOST_DECISIONS = 2
MOST_EXECUTOR_S = 1.3  # times the least
PARTS = (*POLICIES, PEER)


def run(setup: BenchSetup) -> BenchReport:
    policies = [setup.only] if setup.only else [JUDGED] if setup.quick else list(PARTS)
    folder = Path(tempfile.mkdtemp(prefix="spillway-standalone-"))
    setup.progress(f"starting {WORKERS} workers", 0.0)
    seen: dict[str, Steps] = {}
    said: dict[str, Any] = {}
    try:
        with standalone(WORKERS, folder) as address:
            for peer in (False, True):
                own = [policy for policy in policies if (policy == PEER) == peer]
                if not own:
                    continue
                with session(address, peer=peer) as spark:
                    for policy in own:
                        part = _part(setup.progress, len(seen), len(policies))
                        seen[policy], said[policy] = measured(
                            policy, address, spark, Lengths(), part
                        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results = {policy: steps.figures() for policy, steps in seen.items()}
    return BenchReport(
        results=results,
        details={
            "load": {
                "rate_per_s": RATE_PER_S,
                "cost_s": COST_S,
                "delay_target_s": TARGET_S,
                "steps": [phase.rate_per_s / RATE_PER_S for phase in Lengths().phases(0.0)],
            },
            "runs": {policy: _details(steps, said[policy]) for policy, steps in seen.items()},
        },
        tables=(table_of("load steps 1x, 3x, 1x", results),),
        failures=tuple(failures_of(seen[JUDGED])) if JUDGED in seen else (),
    )


def _details(steps: Steps, said: list[dict[str, Any]]) -> dict[str, Any]:
    from_s = steps.phases[0].from_s
    return {
        "decisions": steps.decisions(),
        "executors": [(round(at_s - from_s, 1), count) for at_s, count in steps.counts],
        "said": [{**one, "time_s": round(one["time_s"] - from_s, 1)} for one in said],
    }


def failures_of(steps: Steps) -> list[str]:
    problems, counts = [], steps.decisions()
    if max(counts) > MOST_DECISIONS or min(counts) < 1:
        problems.append(f"{JUDGED} decided {counts} times after the steps: 1 or 2 are asked for")
    if not steps.holds():
        problems.append(f"{JUDGED} did not hold the target after the load had risen")
    if steps.executor_s() > MOST_EXECUTOR_S * steps.least_executor_s():
        problems.append(
            f"{JUDGED} took {steps.executor_s():.0f} executor seconds: at most {MOST_EXECUTOR_S:g}"
            f" times {steps.least_executor_s():.0f} are asked for"
        )
    return problems


def table_of(title: str, results: Mapping[str, Mapping[str, Any]]) -> Table:
    rows: list[tuple[Any, ...]] = [
        (
            name,
            given["decisions_per_step"],
            "never" if given["settle_s"] is None else given["settle_s"],
            "yes" if given["holds"] else "no",
            given["shed_tuples"],
            given["executor_s"],
            f"{given['executor_s'] / given['least_executor_s']:.2f}",
        )
        for name, given in results.items()
    ]
    columns = ("policy", "decisions", "settles (s)", "holds", "shed", "executor s", "of the least")
    return Table(title=title, columns=columns, rows=rows)


def _part(progress: Progress, place: int, parts: int) -> Progress:
    return lambda words, share: progress(words, (place + share) / parts)


BENCHMARKS = (
    Benchmark(
        name="executors",
        title="executors follow load steps on a standalone cluster: every policy, and Spark's own",
        run=run,
        parts=PARTS,
    ),
)
