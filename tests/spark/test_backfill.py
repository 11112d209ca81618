"""What was shed, processed later: the answer is then the one without shedding, row for row."""

import json
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from flows import START_S, bounded
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.flow.flow import Flow
from spillway.flow.shedders import selection_of
from spillway.flow.sql import streams_of
from spillway.flow.stream_log import log_of
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule, Stretch, kept_tuples
from spillway.gate.shedders.blocks import kept_positions
from spillway.hosts.spark.driver.backfill import Backfill, Plan, corrections
from spillway.hosts.spark.files import Folder
from spillway.logs.synthetic import SyntheticLog
from spillway.ports import Span

ALWAYS = (float("-inf"), float("inf"))
NOW_S = 2e9
STEP, BATCHES = 5_000, 12  # tuples of a batch: five seconds of them
SHED = range(4, 9)  # batches
QUERIES = {
    "totals": "SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n,"
    " avg(id) AS mean, max(id) AS top FROM bids GROUP BY window(event_time, '5 seconds'), key",
    "rare": "SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n FROM bids"
    " GROUP BY window(event_time, '5 seconds'), key HAVING count(*) < 900",
    "sliding": "SELECT window(event_time, '6 seconds', '2 seconds') AS period, count(*) AS n"
    " FROM bids GROUP BY window(event_time, '6 seconds', '2 seconds')",
    "both": "SELECT b.period, b.n AS bids, a.n AS asks"
    " FROM (SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n FROM bids"
    "       GROUP BY window(event_time, '5 seconds'), key) AS b"
    " JOIN (SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n FROM asks"
    "       GROUP BY window(event_time, '5 seconds'), key) AS a"
    " ON b.key = a.key AND b.period = a.period",
    "rows": "SELECT id, key FROM bids WHERE key < 2",
}


def flow_of(query: str, **stream: Any) -> Flow:
    given = {
        "source": "synthetic",
        "options": {"rate": 1000, "columns": "id position, key key(5), event_time time"},
        "event_time": "event_time",
        "watermark": "2s",
        **stream,
    }
    asked = {"class": "all", "sink": {"type": "noop"}, "sql": QUERIES[query]}
    flow = Flow.model_validate(
        {
            "streams": {"bids": given, "asks": given},
            "classes": {"all": {"delay": "2s"}},
            "queries": {query: asked},
        }
    )
    return bounded(flow, dict.fromkeys(("bids", "asks"), STEP * BATCHES))


def shed(flow: Flow, query: str, root: Path, batches: int = BATCHES) -> None:
    """Ledgers of a run in which some batches of the first stream kept three of ten tuples."""
    for name in streams_of(query, QUERIES[query], flow):
        path = Folder(root=root).ledger(query, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(encode(offset)) for offset in offsets(flow, query, name)]
        path.write_text("".join(f"{line}\n" for line in lines[: 1 + batches]))


def offsets(flow: Flow, query: str, name: str) -> Iterator[Offset]:
    selection, admitted, dropped = selection_of(flow.streams[name]), 0, 0
    for seq in range(1 + BATCHES):
        start, stop = max(0, seq - 1) * STEP, seq * STEP
        sheds = name == "bids" and seq in SHED
        read = start + 1_000 if sheds and seq == SHED[-1] else start  # a part was never read
        rule = Rule(keep_ppm=300_000, seed=seq, selection=selection) if sheds else Rule()
        stretch = Stretch(partition=0, start=start, read=read, stop=stop)
        admitted += kept_tuples((stretch,), rule)
        dropped += stretch.tuples - kept_tuples((stretch,), rule)
        yield Offset(
            gate=f"{query}/{name}",
            began_us=1,
            seq=seq,
            planned_us=round((START_S + stop / 1000.0) * 1e6),
            stretches=(stretch,),
            rule=rule,
            totals=Totals(offered=stop, admitted=admitted, shed=dropped),
            pinned={"start": str(START_S)},
        )


def answer(spark: SparkSession, flow: Flow, query: str, *, whole: bool) -> Counter[Any]:
    """By batch SQL, over all tuples or over those that were kept."""
    for name in streams_of(query, QUERIES[query], flow):
        log = log_of(flow, f"{query}/{name}", {"start": str(START_S)})
        [span] = log.extent(NOW_S)
        frame = spark.createDataFrame(pa.Table.from_batches(log.read(span, None)))
        if not whole:
            kept = [
                (int(position),)
                for offset in offsets(flow, query, name)
                for stretch in offset.stretches
                for position in kept_positions(stretch, offset.rule, log)
            ]
            frame = frame.join(spark.createDataFrame(kept, "id long"), "id")
        frame.createOrReplaceTempView(name)
    return rows_of(spark.sql(QUERIES[query]))


def rows_of(frame: Any) -> Counter[Any]:
    return Counter(frame.collect())


def of_windows(rows: Counter[Any], plan: Plan) -> Counter[Any]:
    begins = seconds(plan)
    return Counter(
        {r: n for r, n in rows.items() if r.period.start.timestamp() - START_S in begins}
    )


def seconds(plan: Plan) -> set[float]:
    """After the start."""
    return {us / 1e6 - START_S for us in plan.windows_us}


IN_EVERY_RUN = ("totals", "rows")  # the others with the slow tests


@pytest.mark.parametrize(
    "query",
    [pytest.param(q, marks=() if q in IN_EVERY_RUN else pytest.mark.slow) for q in QUERIES],
)
def test_with_what_was_shed_the_answer_is_the_one_without_shedding(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    flow = flow_of(query)
    shed(flow, query, tmp_path)
    work = Backfill(flow, Folder(root=tmp_path), query, NOW_S)
    plan = work.plan(*ALWAYS)
    kept, whole = (answer(spark, flow, query, whole=one) for one in (False, True))
    again = rows_of(work.result(plan, spark, *ALWAYS))
    assert plan.shed_tuples == pytest.approx(4 * 3_500 + 1_000 + 2_800, abs=200)
    assert (plan.gone_tuples, plan.gone_windows, plan.open_windows) == (0, 0, 0)
    assert kept != whole
    stale = Counter() if query == "rows" else of_windows(kept, plan)
    assert kept - stale + again == whole


def test_what_a_shedder_dropped_by_the_data_is_found_in_the_data(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = flow_of("rows", shedder="utility", utility="-key")
    shed(flow, "rows", tmp_path)
    work = Backfill(flow, Folder(root=tmp_path), "rows", NOW_S)
    kept, whole = (answer(spark, flow, "rows", whole=one) for one in (False, True))
    again = rows_of(work.result(work.plan(*ALWAYS), spark, *ALWAYS))
    assert kept + again == whole
    assert kept != whole


def test_windows_that_the_query_has_not_closed_are_left_to_it(tmp_path: Path) -> None:
    flow = flow_of("totals")
    shed(flow, "totals", tmp_path, batches=8)  # it has come to second 40, its watermark to 38
    plan = Backfill(flow, Folder(root=tmp_path), "totals", NOW_S).plan(*ALWAYS)
    assert seconds(plan) == {15.0, 20.0, 25.0, 30.0}
    assert plan.open_windows == 2  # the last tuple has come at second 40 itself


def test_a_part_of_the_time_touches_the_windows_of_that_part(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow, span = flow_of("totals"), (START_S + 20.0, START_S + 25.0)
    shed(flow, "totals", tmp_path)
    file = tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump(flow.model_dump(by_alias=True, exclude_none=True)))
    begin, end = (datetime.fromtimestamp(moment_s, UTC).isoformat() for moment_s in span)
    command = ["backfill", str(tmp_path), "--query", "totals", "--flow", str(file)]
    command += ["--from", begin, "--to", end, "--dry-run", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, (done.exception, done.output)
    told = json.loads(done.output)
    work = Backfill(flow, Folder(root=tmp_path), "totals", NOW_S)
    plan = work.plan(*span)
    assert seconds(plan) == {20.0}
    assert told["windows"] == [begin]
    assert told["shed_tuples"] == plan.shed_tuples == pytest.approx(3_500, abs=200)
    assert not (tmp_path / "backfill").exists(), "a dry run writes nothing"
    found = work.result(plan, spark, *span)
    assert work.write(plan, found, *span) == work.write(plan, found, *span)
    written = spark.read.parquet(str(corrections(tmp_path, "totals", *span)))
    assert [tuple(row) for row in written.selectExpr("count(*)", "sum(n)").collect()] == [
        (5, 5_000)
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it gives way to everything else that the machine does
def test_the_command_computes_and_writes_in_a_session_of_its_own(tmp_path: Path) -> None:
    flow = flow_of("totals")
    shed(flow, "totals", tmp_path)
    file = tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump(flow.model_dump(by_alias=True, exclude_none=True)))
    command = [sysconfig.get_path("scripts") + "/spillway", "backfill", str(tmp_path), "--json"]
    command += ["--query", "totals", "--flow", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["rows"] == 5 * len(told["windows"]) == 30
    assert sum(pq.read_table(told["written"])["n"].to_pylist()) == 30_000
    assert "below everything else" in done.stderr


def test_what_has_left_the_log_is_counted_and_its_windows_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka after its retention."""
    flow = flow_of("totals")
    shed(flow, "totals", tmp_path)
    before = Backfill(flow, Folder(root=tmp_path), "totals", NOW_S).plan(*ALWAYS)
    left = (Span(partition=0, start=22_000, stop=STEP * BATCHES),)
    monkeypatch.setattr(SyntheticLog, "extent", lambda log, now_s: left)
    after = Backfill(flow, Folder(root=tmp_path), "totals", NOW_S).plan(*ALWAYS)
    assert after.gone_tuples == before.shed_tuples - after.shed_tuples
    assert after.gone_tuples == pytest.approx(3_500 + 1_400, abs=200)
    # Second 22 is there; rows of up to two seconds later may have come before, and be gone.
    assert seconds(after) == {25.0, 30.0, 35.0, 40.0}
    assert after.gone_windows == 1
