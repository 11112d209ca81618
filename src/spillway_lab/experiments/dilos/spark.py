"""dilos-advantages on Spark: the same five ways, three classes of SQL queries, constant load.

Every class filters one stream of events with an expensive condition; class 3 has a windowed
aggregate over a heavy stream besides. Rates are set from what the machine does at first, so that
the whole load is slightly above its capacity and classes 1 and 2 are far below their shares.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.progress import summarise
from spillway.report import Table
from spillway_lab.benchmarks.flow_runs import opened, started, watch
from spillway_lab.experiments.dilos.claims import saved
from spillway_lab.experiments.dilos.setting import MODES, SYNERGY, Mode
from spillway_lab.experiments.report import Check, Report, Setup

# ALoMa moves in steps, one per batch of its slowest query: it needs half a minute to get there.
CALIBRATION_S, WARM_S, MEASURED_S = 20.0, 30.0, 40.0
FILTER_SHARE = 0.15  # of the machine, for the filter of each class
HEAVY_SHARE = 0.5  # of the machine, for the heavy stream of class 3
CLASSES: Mapping[str, dict[str, Any]] = {
    "class1": {"priority": 6, "delay": "2s"},
    "class2": {"priority": 3, "delay": "2500ms"},
    "class3": {"priority": 1, "delay": "3s"},
}
TARGETS_S = {"class1": 2.0, "class2": 2.5, "class3": 3.0}
CONDITION = "sha2(concat(cast(key AS STRING), cast(value AS STRING)), 512) LIKE '0%'"
FILTERED = f"SELECT key, value FROM events WHERE {CONDITION}"
TRENDS = (
    "SELECT window(event_time, '10 seconds') AS period, key, avg(value) AS mean FROM clicks"
    " GROUP BY window(event_time, '10 seconds'), key"
)
READERS = {"class1": "watch", "class2": "report", "class3": "archive"}


@dataclass(frozen=True, kw_only=True)
class Rates:
    events_per_s: int
    clicks_per_s: int


@dataclass(frozen=True, kw_only=True)
class Got:
    """What a class got: means over its queries, because one stream has more tuples than another."""

    loss_ratio: float
    mean_delay_s: float


def advantages_on_spark(setup: Setup) -> Report:
    setup.progress("starting Spark", 0.01)
    with opened(_flow("dilos", Rates(events_per_s=1, clicks_per_s=1))) as spark:
        setup.progress("measuring the machine", 0.03)
        rates = _calibrate(spark)
        runs: dict[str, dict[str, Got]] = {}
        for number, mode in enumerate(MODES):
            setup.progress(MODES[mode], 0.15 + 0.85 * number / len(MODES))
            runs[mode] = _measure(spark, mode, rates)
    return Report(
        experiment="dilos-advantages",
        setup=setup,
        results={
            "modes": {m: {c: asdict(got) for c, got in run.items()} for m, run in runs.items()},
            "rates": asdict(rates),
        },
        checks=_checks(runs),
        tables=[_table(runs, rates)],
    )


def _flow(mode: Mode, rates: Rates) -> Flow:
    shared = mode == "dilos-sharing"
    law = {"none": "none", "common": "aloma"}.get(mode, "predictive")
    common = {"all": {"priority": 1, "delay": CLASSES["class3"]["delay"], "manager": law}}
    separate = {name: {**c, "manager": law} for name, c in CLASSES.items()}
    derived = {"hot": {"from_sql": FILTERED}} if shared else {}
    read = "SELECT key, value FROM hot" if shared else FILTERED
    texts = dict.fromkeys(READERS.items(), read)
    texts["class3", "trends"] = TRENDS
    return Flow.model_validate(
        {
            "streams": {
                "events": {"source": "synthetic", "options": {"rate": rates.events_per_s}},
                "clicks": {
                    "source": "synthetic",
                    "options": {"rate": rates.clicks_per_s},
                    "event_time": "event_time",
                    "watermark": "5s",
                },
                **derived,
            },
            "classes": common if mode == "common" else separate,
            "queries": {
                query: {
                    "class": "all" if mode == "common" else name,
                    "mode": "update",
                    "sink": {"type": "noop"},
                    "combine": False,
                    "sql": sql,
                }
                for (name, query), sql in texts.items()
            },
            "control": {"policy": "dilos" if mode.startswith("dilos") else "none"},
        }
    )


def _calibrate(spark: SparkSession) -> Rates:
    """Tuples per second of each kind of query alone on the machine, scaled to the shares."""
    capacities = []
    for query in ("watch", "trends"):
        flow = _flow("dilos", Rates(events_per_s=5_000_000, clicks_per_s=20_000_000))
        alone = flow.model_copy(update={"queries": {query: flow.queries[query]}})
        with started(alone, spark) as application:
            watch(application, time.time() + CALIBRATION_S)
            batches = [b for b in application.batches if b.kept_tuples > 0]
        late = batches[len(batches) // 2 :]
        capacities.append(sum(b.kept_tuples for b in late) / sum(b.duration_s for b in late))
    return Rates(
        events_per_s=round(FILTER_SHARE * capacities[0]),
        clicks_per_s=round(HEAVY_SHARE * capacities[1]),
    )


def _measure(spark: SparkSession, mode: Mode, rates: Rates) -> dict[str, Got]:
    with started(_flow(mode, rates), spark) as application:
        watch(application, time.time() + WARM_S)
        from_s = time.time()
        watch(application, from_s + MEASURED_S)
        return {name: _got(application, name, from_s) for name in CLASSES}


def _got(application: Application, class_name: str, from_s: float) -> Got:
    queries = [READERS[class_name], *(["trends"] if class_name == "class3" else [])]
    losses, delays_s = [], []
    for query in queries:
        mine = [b for b in list(application.batches) if b.gate.startswith(f"{query}/")]
        seen = summarise([b for b in mine if b.ended_s > from_s], TARGETS_S[class_name])
        if seen is None:  # not one batch in all this time: whatever waits is older than the run
            losses.append(0.0)
            delays_s.append(MEASURED_S)
        else:
            losses.append(1.0 - seen.kept_tuples / max(1, seen.offered_tuples))
            delays_s.append(seen.mean_s)
    return Got(loss_ratio=float(np.mean(losses)), mean_delay_s=float(np.mean(delays_s)))


def _checks(runs: Mapping[str, Mapping[str, Got]]) -> list[Check]:
    loss = {mode: [got.loss_ratio for got in run.values()] for mode, run in runs.items()}
    return [
        *_without_synergy(runs["none"]["class3"], loss["common"], loss["separate"]),
        *saved(*(loss[mode][2] for mode in SYNERGY), clearly=0.8),
        _spared({mode: runs[mode] for mode in ("dilos", "dilos-sharing")}),
    ]


def _without_synergy(late: Got, common: list[float], separate: list[float]) -> list[Check]:
    target_s = TARGETS_S["class3"]
    return [
        Check(
            name="without a load manager class 3's delay leaves its target behind",
            paper="117 s, target 0.5 s",
            here=f"{late.mean_delay_s:.1f} s, target {target_s:g} s",
            holds=late.mean_delay_s > 1.5 * target_s,
        ),
        Check(
            name="with one common load manager all classes lose alike",
            paper="42.19, 42.15, 42.24 %",
            here=_percent(common),
            holds=0.0 < max(common) < 1.25 * min(common),
        ),
        Check(
            name="with separate load managers only class 3 loses",
            paper="0, 0, 85.37 %",
            here=_percent(separate),
            holds=max(separate[:2]) == 0.0 < separate[2],
        ),
    ]


def _spared(runs: Mapping[str, Mapping[str, Got]]) -> Check:
    got = [(name, run[name]) for run in runs.values() for name in ("class1", "class2")]
    lost = [one.loss_ratio for _, one in got]
    used = [one.mean_delay_s / TARGETS_S[name] for name, one in got]
    return Check(
        name="classes 1 and 2 lose nothing and keep their targets under DILoS",
        paper="0 % and 8.9 to 36.5 ms",
        here=f"{_percent(lost)} lost; "
        + ", ".join(f"{share:.0%}" for share in used)
        + " of the targets used",
        holds=max(lost) == 0.0 and max(used) <= 1.0,
    )


def _percent(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2%}" for ratio in ratios)


def _table(runs: Mapping[str, Mapping[str, Got]], rates: Rates) -> Table:
    rows = [
        (
            MODES[mode],  # type: ignore[index]
            *(f"{got.loss_ratio:.1%}, {got.mean_delay_s:.2f} s" for got in run.values()),
        )
        for mode, run in runs.items()
    ]
    title = (
        f"loss and mean delay; {rates.events_per_s:,} events/s read by three classes,"
        f" {rates.clicks_per_s:,} clicks/s by class 3"
    )
    return Table(title=title, columns=("mode", *CLASSES), rows=rows)
