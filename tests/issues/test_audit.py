"""Ways in which the audit said "exact", or raised an alarm, and was wrong."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.gate import ledger
from spillway.gate.ledger import LEDGER_TWICE, LifeAudit, audit
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.driver.running import opened
from spillway.hosts.spark.files import Archive, Folder, audits
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.testing import ToyLog, ToySpark, toy_planner, toy_source


def chain_of(batches: int = 12) -> list[Offset]:
    clock, log = ManualClock(1000.0), ToyLog(rate_per_s=30_000.0, partitions=2)
    with toy_source(log):
        spark = ToySpark(toy_planner(clock), clock)
        spark.batches(batches)
    return [decode(value) for value in spark.logged]


CHAIN = chain_of()
FLOW = Flow.model_validate(
    {
        "streams": {"ticks": {"source": "synthetic"}},
        "classes": {"default": {"delay": "2s"}},
        "queries": {"q": {"sql": "SELECT * FROM ticks"}},
    }
)


def line(offset: Offset) -> str:
    return json.dumps(encode(offset))


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(text + "\n" for text in lines))
    return path


# -- what is offered


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "options", [{}, {"manager": "none", "max_batch": "2000"}, {"manager": "aloma"}]
)
def test_a_clock_that_steps_back_while_tuples_are_pending_is_no_alarm(
    options: dict[str, str], seed: int
) -> None:
    clock, rng = ManualClock(1.7e9), random.Random(seed)
    given = {"source": "synthetic", "rate": "20000", "partitions": "2", **options}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance)
    spark = ToySpark(Planner(given, GateOptions.parse(given), around=around), clock)
    for _ in range(25):
        spark.batch()
        if rng.random() < 0.4:
            clock.advance(-rng.random())
    assert audit([decode(value) for value in spark.logged]).problems == ()


class UnevenLog(ToyLog):
    """Two partitions, each with an end of its own."""

    ends = (0, 0)

    def extent(self, now_s: float) -> Any:
        spans = super().extent(now_s)
        return tuple(replace(s, start=0, stop=e) for s, e in zip(spans, self.ends, strict=True))


def test_what_one_partition_has_lost_sight_of_hides_nothing_that_comes_to_another() -> None:
    clock, log = ManualClock(1000.0), UnevenLog(partitions=2)
    with toy_source(log):
        spark = ToySpark(toy_planner(clock, max_batch="500"), clock)
        spark.batch()
        log.ends = (2000, 0)
        spark.batch()
        log.ends = (0, 300)  # a replica that lags, while the other partition goes on
        batch = spark.batch()
    assert batch is not None
    assert batch.totals.offered == 2300
    assert audit([decode(value) for value in spark.logged]).exact


def test_pending_is_what_lies_between_the_batch_and_what_was_offered() -> None:
    batch = next(b for b in CHAIN if b.totals.admitted)
    totals = replace(batch.totals, offered=batch.totals.offered + 5)
    changed = [replace(b, totals=totals) if b is batch else b for b in CHAIN[: batch.seq + 1]]
    assert any("pending" in problem for problem in audit(changed).problems)


def test_a_first_offset_of_an_earlier_release_goes_on_without_an_alarm() -> None:
    clock, log = ManualClock(1000.0), ToyLog(rate_per_s=30_000.0)
    with toy_source(log):
        spark = ToySpark(toy_planner(clock, manager="none", max_batch="1000"), clock)
        spark.batches(6)
        for value in spark.logged:
            for part in value["partitions"].values():
                part.pop("end", None)
        assert decode(spark.logged[-1]).totals.pending > 0
        clock.advance(-0.5)
        spark.batches(10)
    chain = [decode(value) for value in spark.logged]
    assert audit(chain).exact
    assert chain[-1].ends


# -- more that must not pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda o: replace(o, heartbeat=True), "a heartbeat has none"),
        (
            lambda o: replace(o, totals=replace(o.totals, lost=o.offered_tuples + 1)),
            "tuples lost, but it leaves only",
        ),
        (lambda o: replace(o, ends={p: s - 1 for p, s in o.ends.items()}), "offered"),
    ],
)
def test_what_cannot_be_is_a_problem(change: Any, said: str) -> None:
    number = next(b.seq for b in CHAIN if b.seq > 2 and b.offered_tuples > 0)
    problems = audit([*CHAIN[:number], change(CHAIN[number]), *CHAIN[number + 1 :]]).problems
    assert any(said in problem for problem in problems)


def test_batch_zero_that_begins_with_totals_is_a_problem() -> None:
    first = replace(CHAIN[0], totals=replace(CHAIN[0].totals, offered=7))
    assert "batch 0: consumes tuples" in audit([first]).problems[0]


# -- two lines for one batch


def test_two_different_lines_for_a_batch_are_a_problem(tmp_path: Path) -> None:
    other = replace(CHAIN[5], planned_us=CHAIN[5].planned_us + 1)
    path = write(tmp_path / "ledger", [line(o) for o in [*CHAIN[:8], other, *CHAIN[8:]]])
    [result] = audits(path, None)
    assert result.problems == (f"batch 5: {LEDGER_TWICE}",)


def test_equal_lines_are_one_however_they_are_written(tmp_path: Path) -> None:
    again = json.dumps(dict(reversed(encode(CHAIN[5]).items())), indent=None)
    path = write(tmp_path / "ledger", [*(line(o) for o in CHAIN[:8]), again, *map(line, CHAIN[5:])])
    [result] = audits(path, None)
    assert result.exact
    assert result.batch_count == len(CHAIN)


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_lines_is_of_no_matter(seed: int) -> None:
    rng = random.Random(seed)
    scattered = [*CHAIN, *rng.sample(CHAIN, 5)]
    rng.shuffle(scattered)
    assert audit(scattered) == audit(CHAIN)
    left_out = rng.sample(range(len(CHAIN) - 1), 3)
    result = audit([offset for offset in scattered if offset.seq not in left_out])
    assert result.missing == tuple(sorted(left_out))
    assert result.problems == ()


def test_a_change_is_found_in_whatever_order_the_lines_come() -> None:
    other = replace(CHAIN[6], rule=replace(CHAIN[6].rule, keep_ppm=CHAIN[6].rule.keep_ppm // 2))
    for chain in (reversed([*CHAIN[:6], other, *CHAIN[7:]]), [*CHAIN[:6], *CHAIN[7:], other]):
        assert any("batch 6: admitted" in problem for problem in audit(list(chain)).problems)


def test_more_interruptions_than_are_looked_at_are_never_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "_MOST_RUNS", 2)
    life = LifeAudit()
    for number in (0, 2, 4, 6, 1, 3, 5):
        life.add(CHAIN[number])
    assert not life.result().exact
    assert "interruptions" in life.result().problems[0]


# -- lines that are none


def value(**change: Any) -> dict[str, Any]:
    return {**encode(CHAIN[3]), **change}


def inside(name: str, **change: Any) -> dict[str, Any]:
    return value(**{name: {**encode(CHAIN[3])[name], **change}})


WRONG = [
    value(seq="3"),
    value(seq=3.0),
    value(seq=True),
    value(seq=-1),
    value(seq=1 << 70),
    value(gate=["a"]),
    value(gate="\ud800"),
    value(began_us=float("nan")),
    value(planned_us=None),
    value(heartbeat=0),
    value(partitions=[1]),
    value(partitions={"0": 1}),
    value(partitions={"00": {"from": 0, "read": 0, "to": 0}}),
    value(partitions={"٣": {"from": 0, "read": 0, "to": 0}}),
    value(partitions={"0": {"from": 0.0, "read": 0, "to": 0}}),
    value(partitions={"0": {"from": 5, "read": 4, "to": 3}}),
    value(partitions={"0": {"from": 0, "read": 0, "to": 0, "end": None}}),
    value(pinned={"a": 1}),
    value(pinned="text"),
    value(learned={"o_ps": 1.5, "c_ps": 1, "s_ps": 1}),
    value(arrived={"mean_us": "1", "p05_us": 1, "p01_us": 1, "first_us": 1}),
    value(gap=5),
    value(gap={"from_us": 1}),
    value(gap={"from_us": 1.0, "until_us": 2}),
    value(gap={"from_us": 1, "until_us": True}),
    value(gap={"from_us": 1, "until_us": 1 << 70}),
    value(gap={"from_us": 1, "until_us": 2, "more": 3}),
    value(instances=None),
    value(total=None),
    inside("total", offered=float("inf")),
    inside("total", shed=-1),
    inside("rule", keep_ppm=2_000_000),
    inside("rule", keep_ppm=True),
    inside("rule", seed=1.0),
    inside("rule", reason=None),
    inside("rule", policy=[]),
    inside("rule", shares=5),
    inside("rule", selection=5),
    inside("rule", selection={"shedder": []}),
    inside("rule", selection={"shedder": "key", "column": 5}),
    inside("rule", selection={"shedder": "windows", "column": "t", "length_us": 1, "windows": 5}),
    value(v=True),
    value(v=None),
]
NO_LINES = [
    b"\xff\xfe",
    b"[" * 100_000 + b"]" * 100_000,
    b"NaN",
    b"9" * 5000,
    b"[]",
    b"null",
    b'"text"',
    b'{"v":1}',
    b"x" * (1 << 22),
]


@pytest.mark.parametrize("text", [*(json.dumps(one).encode() for one in WRONG), *NO_LINES])
def test_what_is_no_offset_is_told_in_one_line_and_with_code_2(tmp_path: Path, text: bytes) -> None:
    """`main` ends every SpillwayError with code 2: 1 is for what does not add up."""
    path = tmp_path / "ledger"
    path.write_bytes(line(CHAIN[0]).encode() + b"\n" + text + b"\n")
    result = CliRunner().invoke(app, ["ledger", str(path)])
    assert isinstance(result.exception, SpillwayError)
    said = str(result.exception)
    assert said.startswith(f"line 2 of '{path}' is no offset")
    assert said.isprintable()
    assert len(said) < 500


@pytest.mark.parametrize("text", [b"\xff\xfe", b"v1\n{}\n" + b"[" * 100_000, b"v1\n{}\n{", b""])
def test_an_offset_file_that_is_none_is_told_in_one_line(tmp_path: Path, text: bytes) -> None:
    path = write(tmp_path / "ledger", [line(CHAIN[0])])
    for name in ("offsets", "commits"):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
        (tmp_path / "checkpoint" / name / "1").write_bytes(text)
    with pytest.raises(SpillwayError, match="restore the checkpoint"):
        audits(path, tmp_path / "checkpoint")


def test_a_ledger_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="cannot be read"):
        audits(tmp_path / ("long" * 100), None)


@pytest.mark.parametrize("as_json", [True, False])
def test_a_huge_number_of_a_batch_costs_no_memory(tmp_path: Path, as_json: bool) -> None:
    far = replace(CHAIN[3], seq=10**18)
    path = write(tmp_path / "ledger", [line(CHAIN[0]), line(far)])
    result = CliRunner().invoke(app, ["ledger", str(path), *(["--json"] if as_json else [])])
    assert result.exit_code == 1
    if as_json:
        [gate] = json.loads(result.output)["gates"]
        assert gate["missing_count"] == 10**18 - 1
        assert gate["missing"] == list(range(1, 1001))


def test_what_a_line_holds_cannot_command_the_screen(tmp_path: Path) -> None:
    bad = replace(CHAIN[0], gate="[/red]\x1b[2J\n", rule=replace(CHAIN[0].rule, reason="[/x]\x07"))
    late = replace(bad, planned_us=(1 << 63) - 1)
    for offset in (bad, late):
        path = write(tmp_path / "ledger", [line(offset)])
        result = CliRunner().invoke(app, ["ledger", str(path)])
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
        assert "[/x]" in result.output


def test_json_has_every_batch_of_every_life_once(tmp_path: Path) -> None:
    other = [replace(offset, gate="other") for offset in CHAIN]
    both = [line(o) for pair in zip(CHAIN, other, strict=True) for o in pair]
    path = write(tmp_path / "ledger", [*both, *both[-6:]])
    result = CliRunner().invoke(app, ["ledger", str(path), "--json"])
    gates = json.loads(result.stdout)["gates"]
    assert [gate["exact"] for gate in gates] == [True, True]
    for gate in gates:
        assert [batch["batch"] for batch in gate["batches"]] == [o.seq for o in CHAIN]
        assert gate["missing"] == []


def test_the_table_shows_the_last_batches_and_holds_no_others(tmp_path: Path) -> None:
    chain = chain_of(40)
    path = write(tmp_path / "ledger", [line(o) for o in chain])
    [result] = audits(path, None, shown=20)
    assert [b.seq for b in result.batches] == [o.seq for o in chain[-20:]]
    assert result.batch_count == len(chain)
    assert f"{len(chain)} batches, the last 20" in (
        CliRunner().invoke(app, ["ledger", str(path)]).output.replace("\n", " ")
    )


# -- two drivers


def test_a_second_driver_on_a_ledger_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, log = ManualClock(1000.0), ToyLog()
    monkeypatch.setattr("spillway.hosts.spark.files._DYING_S", 0.0)
    first = Archive(tmp_path / "ledger.jsonl")
    first.hold(0.0)
    Archive(tmp_path / "ledger.jsonl").hold(0.0)  # another gate of the same driver
    monkeypatch.setattr("spillway.hosts.spark.files.driver_of_planner", lambda: "process 7")
    second = Archive(tmp_path / "ledger.jsonl")
    with pytest.raises(SpillwayError, match=r"ledger '.*' is in use by process \d+ .*: stop that"):
        second.hold(0.0)
    with toy_source(log):
        given = {"ledger": str(tmp_path / "other.jsonl")}
        spark = ToySpark(toy_planner(clock, **given), clock)
        spark.batches(3)
        monkeypatch.setattr("spillway.hosts.spark.files.driver_of_planner", lambda: "process 8")
        late = toy_planner(clock, **given)
        archive = late._archive
        assert isinstance(archive, Archive)
        monkeypatch.setattr(archive, "hold", lambda: Archive.hold(archive, 0.0))
        with pytest.raises(SpillwayError, match="is in use by process 7"):
            late.latest(spark.logged[-1])
        with pytest.raises(SpillwayError, match="is in use by process 7"):
            late.shown(spark.logged[-2], spark.logged[-1])


def test_a_second_run_in_a_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = Folder(root=tmp_path / "run")
    folder.require_free()
    assert not folder.root.exists()
    with folder.lock().while_held():
        with pytest.raises(SpillwayError, match=r"folder '.*run' is in use by process \d+"):
            folder.require_free()
        left = sorted(folder.root.iterdir())
        with (
            pytest.raises(SpillwayError, match=r"folder '.*run' is in use by process \d+"),
            opened(FLOW, "second", folder.root),
        ):
            pass
        assert sorted(folder.root.iterdir()) == left
    folder.require_free()
