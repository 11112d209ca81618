"""What the audit says of counts that came from data, and of what was never read."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.clock import ManualClock
from spillway.gate.ledger import audit
from spillway.gate.offsets import Gap, Offset, Totals, decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.shedders.recount import difference, still_there
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.ports import Span
from spillway.testing import ToyLog, ToySpark

BEGAN_S = 1_700_000_000.0
OPTIONS = {
    "rate": "20000",
    "start": str(BEGAN_S),
    "columns": "id position, k key(200, 1.0), at time",
}
SHEDDERS = {
    "key": {"shedder": "key", "key": "k", "epoch": "1s"},
    "windows": {"shedder": "windows", "window": "500ms"},
}


def flow_of(shedder: str) -> str:
    options = "".join(f"    {name}: {value}\n" for name, value in SHEDDERS[shedder].items())
    return f"""
streams:
  ticks:
    source: synthetic
    options: {json.dumps(OPTIONS)}
    event_time: at
{options}classes: {{default: {{delay: 2s}}}}
queries:
  q: {{sql: SELECT id FROM ticks}}
"""


@pytest.fixture(params=SHEDDERS)
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> list[Offset]:
    """Ten batches of an overloaded gate, with the flow file beside."""
    (tmp_path / "flow.yaml").write_text(flow_of(request.param))
    clock = ManualClock(BEGAN_S)
    options = {"source": "synthetic", **OPTIONS, **SHEDDERS[request.param]}
    options |= {"gate": "q/ticks", "heartbeat": "at", "delay": "2s"}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance)
    spark = ToySpark(Planner(options, GateOptions.parse(options), around=around), clock)
    spark.kept_s = 3e-4
    spark.batches(10)
    return [decode(value) for value in spark.logged]


def one_more(chain: list[Offset], seq: int) -> list[Offset]:
    """The same ledger with a count that is one too large; everything else agrees with it."""

    def moved(totals: Totals) -> Totals:
        return replace(totals, admitted=totals.admitted + 1, shed=totals.shed - 1)

    selection = chain[seq].rule.selection
    counted = replace(selection, kept_tuples=chain[seq].kept_tuples() + 1)  # type: ignore[type-var]
    rule = replace(chain[seq].rule, selection=counted)
    return [
        *chain[:seq],
        replace(chain[seq], rule=rule, totals=moved(chain[seq].totals)),
        *(replace(offset, totals=moved(offset.totals)) for offset in chain[seq + 1 :]),
    ]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    def run(offsets: list[Offset], *arguments: str) -> tuple[int, str]:
        path = tmp_path / "ledger.jsonl"
        path.write_text("".join(json.dumps(encode(offset)) + "\n" for offset in offsets))
        result = CliRunner().invoke(app, ["ledger", str(path), *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_counts_from_data_are_said_to_be_measured_and_not_checked(
    chain: list[Offset], run: Callable[..., tuple[int, str]]
) -> None:
    code, output = run(chain)
    assert code == 0
    assert "of 9 batches the shedder counted in the data what it kept" in output
    assert "not checked; --flow FILE" in output


def test_with_the_flow_file_the_log_is_counted_again(
    chain: list[Offset], run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert chain[-1].totals.shed > 5_000
    code, output = run(chain, "--flow", str(tmp_path / "flow.yaml"))
    assert code == 0, output
    assert "9 batches were counted again in the log" in output
    assert "not checked" not in output
    _, output = run(chain, "--flow", str(tmp_path / "flow.yaml"), "--json")
    [gate] = json.loads(output)["gates"]
    assert gate["measured"] == {"batches": 9, "checked": 9, "gone": 0}


def test_a_count_that_the_log_does_not_have_is_found(
    chain: list[Offset], run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    seq = next(o.seq for o in chain[1:] if 0 < o.kept_tuples() < o.scanned_tuples)
    forged = one_more(chain, seq)
    assert run(forged)[0] == 0  # it adds up: that is all that offsets can say
    code, output = run(forged, "--flow", str(tmp_path / "flow.yaml"))
    assert code == 1
    kept = chain[seq].kept_tuples()
    assert f"batch {seq}: admitted {kept + 1}, but its rule keeps {kept} of the log" in output


def test_a_count_that_does_not_add_up_is_found_without_the_log(
    chain: list[Offset], run: Callable[..., tuple[int, str]]
) -> None:
    forged = one_more(chain, 4)
    code, output = run([*chain[:4], replace(forged[4], totals=chain[4].totals), *chain[5:]])
    assert code == 1
    assert "batch 4: admitted" in output


def test_a_log_that_dropped_a_batch_cannot_check_it(chain: list[Offset]) -> None:
    batch, log = chain[3], ToyLog(start_s=BEGAN_S, rate_per_s=20_000.0)
    now_s = BEGAN_S + 100.0
    assert still_there(batch, log, now_s)
    log.first = batch.stretches[0].read + 1
    assert not still_there(batch, log, now_s)
    log.first, log.limit = 0, batch.stretches[0].stop - 1
    assert not still_there(batch, log, now_s)


def test_positions_without_a_row_make_a_count_less_certain(chain: list[Offset]) -> None:
    """The log does not say where they are: any of them may have been counted as kept."""
    batch = max(chain, key=lambda offset: offset.kept_tuples())
    log = catalog.open_log({"source": "synthetic", **OPTIONS, **batch.pinned}, None)
    read, holes = log.read, batch.scanned_tuples // 10 + 1

    def with_holes(span: Span, wanted: Any) -> Iterator[pa.RecordBatch]:
        for rows in read(span, wanted):
            yield rows.filter(pa.array(rows["id"].to_numpy() % 10 != 0))

    log.read = with_holes  # type: ignore[method-assign]
    assert difference(batch, log) is None
    selection = batch.rule.selection
    counted = replace(selection, kept_tuples=batch.kept_tuples() + holes)  # type: ignore[type-var]
    found = difference(replace(batch, rule=replace(batch.rule, selection=counted)), log)
    assert found is not None
    assert " to " in found


def test_what_was_never_read_is_shown_with_its_arrivals(
    chain: list[Offset], run: Callable[..., tuple[int, str]]
) -> None:
    last = chain[-1]
    [stretch] = last.stretches
    skipped = min(100, stretch.stop - stretch.start)
    gap = Gap(from_us=round(BEGAN_S * 1e6), until_us=round((BEGAN_S + 1.5) * 1e6))
    unread = replace(last, stretches=(replace(stretch, read=stretch.start + skipped),), gap=gap)
    _, output = run([*chain[:-1], unread])
    gaps = [batch.unread_tuples for batch in [*chain[:-1], unread] if batch.unread_tuples]
    assert f"{sum(gaps)} were never read, in {len(gaps)} gaps" in output
    assert f"batch {last.seq}: {skipped} unread, arrived from 2023-11-14 22:13:20.000" in output
    assert "to 2023-11-14 22:13:21.500" in output
    _, output = run([*chain[:-1], unread], "--json")
    batch = json.loads(output)["gates"][0]["batches"][-1]
    assert batch["unread"] == skipped
    assert batch["gap"] == {"from_us": gap.from_us, "until_us": gap.until_us}


def test_of_many_gaps_all_are_counted_and_the_last_are_shown(
    chain: list[Offset], run: Callable[..., tuple[int, str]]
) -> None:
    """Whatever the order of the lines, and however many batches the table shows."""
    at, gaps, known = chain[-1].stretches[0].stop, [], audit(chain)
    for number in range(30):
        stretch = replace(chain[-1].stretches[0], start=at, read=at + number + 1, stop=at + 50)
        gaps.append(replace(chain[-1], seq=len(chain) + number, stretches=(stretch,), gap=None))
    assert audit([*chain, *reversed(gaps)]).gaps == audit([*chain, *gaps]).gaps
    for ordered in (gaps, gaps[::-1]):
        _, output = run([*chain, *ordered])
        said = f"{known.unread_tuples + 465} were never read, in {known.gap_count + 30} gaps"
        assert f"{said}, the last 10:" in output
        assert f"batch {gaps[-10].seq}: 21 unread" in output
        assert f"batch {gaps[-11].seq}: 20 unread" not in output


def test_counts_are_checked_batch_by_batch_of_each_life_apart(
    chain: list[Offset], run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """Doubles count once, and the log is told by what the last line has pinned."""
    seq = next(o.seq for o in chain[1:] if 0 < o.kept_tuples() < o.scanned_tuples)
    other = [replace(offset, began_us=offset.began_us + 1) for offset in one_more(chain, seq)]
    both = [offset for pair in zip(chain, other, strict=True) for offset in pair]
    flow = ("--flow", str(tmp_path / "flow.yaml"), "--json")
    code, output = run([*both, *both[-4:]], *flow)
    assert code == 1
    right, wrong = json.loads(output)["gates"]
    assert right["measured"] == wrong["measured"] == {"batches": 9, "checked": 9, "gone": 0}
    assert right["exact"]
    assert [batch["measured"] for batch in right["batches"]] == [False] + [True] * 9
    [problem] = wrong["problems"]
    assert problem.startswith(f"batch {seq}: admitted")
    first = [replace(offset, pinned={}) for offset in chain[:5]]
    assert json.loads(run([*first, *chain[5:]], *flow)[1])["gates"][0]["exact"]
