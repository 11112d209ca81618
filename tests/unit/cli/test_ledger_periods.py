"""What a ledger says by hour: the report of a dry run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.cli.periods import periods
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule, Stretch

BEGAN_S = 1_767_225_600  # 2026-01-01 00:00 UTC
HOUR_S = 3600


def batch(seq: int, at_s: int, tuples: int, rule: Rule) -> Offset:
    start = 1000 * seq
    stretch = Stretch(partition=0, start=start, read=start, stop=start + tuples)
    return Offset(
        gate="orders",
        began_us=BEGAN_S * 10**6,
        seq=seq,
        planned_us=(BEGAN_S + at_s) * 10**6,
        stretches=(stretch,),
        rule=rule,
        totals=Totals(offered=tuples, admitted=tuples),
    )


DRY = Rule(would_keep_ppm=250_000, reason="overload")
CHAIN = [
    batch(0, 0, 0, Rule(reason="start")),
    batch(1, 10, 400, Rule(reason="all")),
    batch(2, 20, 400, DRY),
    batch(2, 20, 400, DRY),  # Spark has shown it twice
    batch(3, HOUR_S + 5, 1000, DRY),
    batch(4, HOUR_S + 6, 1000, Rule(keep_ppm=0, would_keep_ppm=0, reason="shed")),
]


def test_each_hour_has_what_went_and_what_would_have_gone() -> None:
    first, second = periods(CHAIN, "hour")
    assert (first.begins, first.batches) == ("2026-01-01 00:00", 3)
    assert (first.offered, first.admitted, first.shed, first.would_shed) == (800, 800, 0, 300)
    assert (second.begins, second.batches) == ("2026-01-01 01:00", 2)
    assert (second.offered, second.admitted, second.shed, second.would_shed) == (
        2000,
        1000,
        1000,
        750,
    )
    [day] = periods(CHAIN, "day")
    assert (day.begins, day.would_shed) == ("2026-01-01", 1050)


def test_the_command_prints_them_and_refuses_other_periods(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(json.dumps(encode(offset)) + "\n" for offset in CHAIN))
    done = CliRunner().invoke(app, ["ledger", str(path), "--by", "day", "--json"])
    assert json.loads(done.stdout)["periods"][0]["shed"] == 1000
    shown = CliRunner().invoke(app, ["ledger", str(path), "--by", "hour"])
    assert "01:00" in shown.stdout
    with pytest.raises(SpillwayError, match="--by is 'week': it must be hour or day"):
        CliRunner().invoke(app, ["ledger", str(path), "--by", "week"], catch_exceptions=False)
