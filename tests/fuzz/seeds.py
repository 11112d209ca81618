"""What the fuzzers start from: right inputs of every kind."""

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from spillway.clock import ManualClock
from spillway.cluster.views import HostView, Resources
from spillway.coding import to_json
from spillway.gate.options import GateOptions
from spillway.gate.told import TellingGate
from spillway.hosts.cluster.messages import (
    FLOW,
    LEADER,
    NODE,
    QUERY,
    REQUEST,
    Assignment,
    FlowGiven,
    Leadership,
    NodeOrder,
    NodeReport,
    Request,
    Successor,
)
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.journal.entries import Event, encoded
from spillway.lines import whole_lines
from spillway.model import (
    Backlog,
    BatchRecord,
    Decided,
    Decision,
    KeepFraction,
    Measurement,
    Prices,
    Report,
    Target,
)
from spillway.templates.instances import open_store
from spillway.templates.templates import Template
from spillway.testing import ToyLog, ToySpark, toy_source

ROOT = Path(__file__).parents[2]
TEMPLATE = "SELECT count(*) AS n FROM t WHERE k = :key GROUP BY window(ts, :size)"


RICH = """\
streams:
  events:
    source: kafka
    columns: {key: string, value: double, ts: timestamp}
    options: {topic: in, kafka.bootstrap.servers: "h:9092", reader: native, min_keep: "0.1"}
    event_time: ts
    watermark: 5s
    shedder: windows
    window: 10s
  hot: {from_sql: SELECT key, value FROM events WHERE value > 1, keep: 2h}
classes:
  gold: {delay: p99 2s, priority: 3, manager: {law: ctrl, headroom: 0.9}, max_shed: 20% per 10m}
  bronze: {delay: 1s, lend: 0.5, min_keep: 0.2, shedding: paused}
queries:
  sums:
    class: gold
    estimate: true
    confidence: 0.9
    error: 5%
    gives: delay
    partitions: 4
    mode: append
    sql: SELECT key, sum(value) AS s FROM events GROUP BY window(ts, '10 seconds'), key
    sink: {type: kafka, brokers: "h:9092", topic: out, exactly_once: true}
  rest: {class: bronze, sql: SELECT * FROM hot, sink: {type: parquet, path: out}, dry_run: true}
control: {period: 2s, policy: guaranteed, cycle: 4, warm_up: 0s}
spark: {master: "spark://h:7077", config: {spark.executor.memory: 1g}}
scale: {min: 1, max: 8, policy: true-rate, period: 5s, shed_price: 1.5, executor_price: 0.2}
"""
CLUSTER = """\
streams: {ticks: {source: synthetic, options: {rate: 10}}}
classes: {default: {delay: 1s}}
queries: {q: {sql: SELECT * FROM ticks, sink: {type: noop}}}
cluster:
  control: {type: folder, path: control}
  launcher: none
  folder: shared
  cores: 2
  fewest: 1
  most: 4
  lease: 10s
  upper: 0.9
  tables: scenarios
"""


@cache
def flows() -> tuple[str, ...]:
    examples = (path.read_text() for path in sorted((ROOT / "examples").glob("*.yaml")))
    return (*examples, RICH, RICH, CLUSTER)


SQL = (
    "SELECT key, count(*) AS n, avg(value) AS a FROM s GROUP BY window(event_time, '10s'), key",
    "SELECT a.key, b.value FROM s AS a JOIN s AS b ON a.key = b.key AND a.value > 1",
    "WITH w AS (SELECT key, value FROM s) SELECT CASE WHEN value > 1 THEN 'x' END AS k FROM w",
    "SELECT key FROM s WHERE key IN (SELECT key FROM s WHERE value > 1) UNION SELECT key FROM s",
    "SELECT transform(array(key), x -> x + 1) AS t, extract(hour FROM event_time) FROM s",
)
UTILITIES = (
    "price * volume",
    "intervals(price, 0, 10, 1, 10, 100, 5) + if(volume > 3 AND NOT price < 1, 2, -1)",
    "greatest(abs(price), ln(volume), coalesce(price, 0)) % 7",
)
TYPES = ("struct<a: int, `b c`: map<string, array<decimal(10, 2)>>>", "timestamp", "varchar(9)")
DURATIONS = ("300ms", "p99 2s", "1.5h", ".5 s", "mean 10s")
OPTIONS: tuple[dict[str, str], ...] = (
    {"source": "synthetic", "rate": "0:1000,30:5000", "partitions": "2", "delay": "p95 2s"},
    {"source": "synthetic", "columns": "id position, key key(10, 1.2), ts time(5s)", "delay": "2s"},
    {"source": "synthetic", "workload": "web", "rate": "10", "duration": "1m", "delay": "2s"},
    {"source": "nexmark", "stream": "bid", "manager": "pid", "max_shed": "20% per 10m"},
    {"source": "synthetic", "manager": "ctrl", "manager.headroom": "0.9", "trigger": "1s"},
    {"source": "synthetic", "shedder": "key", "key": "key", "epoch": "1m", "seed": "7"},
    {"source": "synthetic", "shedder": "windows", "window": "10s", "heartbeat": "event_time"},
    {"source": "synthetic", "split": "shared:1,alerts:1:10,scores:8:1", "first_batch": "10"},
    {"source": "synthetic", "masks": "a:1000000,b:250000", "start": "2026-01-31T12:00:00"},
    {"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "h:9092", "decode": "raw"},
    {"source": "replay", "path": "nothing.csv", "speed": "2", "unit": "ms"},
    {"source": "files", "path": "nothing", "startingOffsets": '{"t": {"0": 42}}'},
)


@cache
def offsets() -> tuple[dict[str, Any], ...]:
    """Of a gate that had to shed."""
    clock, log = ManualClock(1000.0), ToyLog(rate_per_s=30_000.0, partitions=2)
    given = {"source": "toy", "delay": "2s", "shedder": "uniform"}
    with toy_source(log):
        around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance)
        spark = ToySpark(Planner(given, GateOptions.parse(given), around=around), clock)
        spark.batches(8)
    return tuple(spark.logged)


def measurement(time_s: float, offered: int = 100) -> Measurement:
    return Measurement(
        time_s=time_s,
        period_s=1.0,
        target=Target(delay_s=2.0, statistic="p99"),
        offered_tuples=offered,
        admitted_tuples=offered - 10,
        shed_tuples=10,
        completed_tuples=50,
        queued_tuples=10,
        queued_load_s=0.1,
        offered_load=1.2,
        admitted_load=0.7,
        cost_s=0.012,
        delay_s=1.5,
        busy_s=0.6,
        batches=(
            BatchRecord(kept_tuples=5, scanned_tuples=9, duration_s=0.5, ended_s=time_s - 0.1),
        ),
        prices=Prices(fixed_s=0.2, kept_s=0.001),
        query="q",
    )


@cache
def journal() -> tuple[dict[str, Any], ...]:
    decision = Decision(action=KeepFraction(fraction=0.9), reason="as it is")
    classes = {"default": {"priority": 2, "lend": 0.5, "delay": "2s"}}
    control = {"policy": "dilos", "period": "1s", "cycle": 2}
    begin = Event(
        time_s=1.0, kind="started", fields={"classes": classes, "cores": 2, "control": control}
    )
    decided = [Decided(measurement=measurement(1.0 + n), decision=decision) for n in range(1, 6)]
    entries: list[Decided | Event] = [begin, *decided]
    return tuple(encoded(entry) for entry in entries)


@cache
def record() -> tuple[dict[str, Any], ...]:
    """Of option `record`."""
    told: list[dict[str, Any]] = [{"call": "options", "options": {"delay": "2s"}}]
    options = GateOptions.parse({"delay": "2s"})
    gate = TellingGate(options, told.append)
    from spillway.gate.offsets import decode
    from spillway.gate.planning import survey

    log = ToyLog(rate_per_s=20_000.0)
    previous = decode(offsets()[0])
    gate.resume(previous)
    for n in range(3):
        now_s = 1001.0 + n
        waiting = survey(previous, log.extent(now_s), log.arrivals)
        previous = gate.plan(previous, waiting, now_s)
    return tuple(json.loads(json.dumps(told)))


@cache
def instances() -> tuple[dict[str, Any], ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "q.jsonl"
        rows = [{"key": n, "size": "10 s"} for n in range(3)]
        store = open_store(path, Template.parse("q", TEMPLATE), rows)
        store.add([{"key": 9, "size": "10 s"}])
        store.remove([1])
        return tuple(json.loads(line) for line in whole_lines(path))


CSV = ("key,size\n1,10 s\n2,10 s\n", 'key,size\n"1","1 minute"\n"a,b",10 s\n')


@cache
def report() -> dict[str, Any]:
    decision = Decision(action=KeepFraction(fraction=0.9), reason="as it is")
    decided = Decided(measurement=measurement(5.0), decision=decision)
    return to_json(
        Report,
        Report(
            query="q",
            class_name="gold",
            time_s=5.0,
            offered_tuples=100,
            admitted_tuples=80,
            shed_tuples=10,
            completed_tuples=70,
            backlog=Backlog(pending_tuples=10, mean_age_s=0.1),
            decided=(decided,),
            prices=Prices(fixed_s=0.2, kept_s=0.001),
        ),
    )


SINK_LOG = 'v1\n{"path":"file:///d/part-0.parquet","size":1,"isDir":false,"modificationTime":1,"blockReplication":1,"blockSize":1,"action":"add"}\n'


@cache
def control() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Records of a cluster that runs: (log, record)."""
    query = {"sql": "SELECT * FROM ticks", "sink": {"type": "noop"}}
    flow = {
        "streams": {"ticks": {"source": "synthetic", "options": {"rate": 10}}},
        "classes": {"default": {"delay": "1s"}},
    }
    given = FlowGiven(flow=flow, folder="shared", lease_s=10.0, cores=2)
    runs = Assignment(query=query, state="runs", node="node-1", life="l1", epoch=1)
    moving = replace(runs, next=Successor(query=query, generation=2, node="node-2"))
    report = NodeReport(
        life="l1",
        lease_s=10.0,
        state="running",
        applied=3,
        running={"q": 1},
        host=HostView(name="node-1", capacity=Resources(cpu_cores=2.0)),
        states={"q": "running"},
    )
    bodies: tuple[tuple[str, str, type[Any], Any], ...] = (
        ("assignments", LEADER, Leadership, Leadership(leader="me", lease_s=10.0)),
        ("assignments", FLOW, FlowGiven, given),
        ("assignments", f"{QUERY}q", Assignment, moving),
        ("assignments", f"{NODE}node-1", NodeOrder, NodeOrder(life="l1")),
        ("reports", f"{NODE}node-1", NodeReport, report),
        ("reports", f"{REQUEST}r", Request, Request(kind="move", name="q", value="node-2")),
    )
    return tuple(
        (log, {"v": 1, "cluster": "flow", "key": key, "epoch": 1, "writer": "w", "body": body})
        for log, key, body in ((log, key, to_json(kind, v)) for log, key, kind, v in bodies)
    )
