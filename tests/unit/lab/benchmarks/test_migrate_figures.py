"""Gaps, losses and doubles of a move, from made-up results."""

import json
from pathlib import Path

import pytest

from spillway_lab.benchmarks.kept_results import Result, kept
from spillway_lab.benchmarks.migrate_figures import figures

CALM, MOVE = (100.0, 110.0), (110.0, 120.0)


def result(end_s: float, late_s: float = 1.0, n: int = 200) -> Result:
    row = {"start_us": round((end_s - 1.0) * 1e6), "n": n}
    return Result(at_s=end_s + late_s, generation=1, row=row)


def of(*changed: Result, without: float = 0.0) -> dict[str, float]:
    ends = {result.row["start_us"] / 1e6 + 1.0 for result in changed} | {without}
    usual = [result(float(end)) for end in range(101, 121) if float(end) not in ends]
    return figures([*usual, *changed], [CALM], MOVE, window_s=1.0, tuples=200)


def test_a_move_that_nobody_saw() -> None:
    found = of()
    assert (found["gap_s"], found["lost"], found["doubled"], found["windows"]) == (0.0, 0, 0, 10)


def test_the_gap_is_what_came_later_than_in_the_calm_part() -> None:
    assert of(result(115.0, late_s=4.5))["gap_s"] == pytest.approx(3.5)
    assert of(result(105.0, late_s=3.0), result(115.0, late_s=4.5))["gap_s"] == pytest.approx(1.5)


def test_tuples_of_a_missing_or_half_window_are_lost_and_of_a_repeated_one_doubled() -> None:
    assert of(without=115.0)["lost"] == 200
    assert of(result(115.0, n=150))["lost"] == 50
    assert of(result(115.0), result(115.0))["doubled"] == 200


def test_a_batch_that_was_run_again_is_read_once(tmp_path: Path) -> None:
    line = {"at_s": 2.0, "generation": 1, "batch": 3, "rows": [{"n": 1}]}
    other = {**line, "generation": 2, "at_s": 1.0}
    (tmp_path / "1.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(line)}\n")
    (tmp_path / "2.jsonl").write_text(f"{json.dumps(other)}\n")
    assert [(r.at_s, r.generation) for r in kept(tmp_path)] == [(1.0, 2), (2.0, 1)]
