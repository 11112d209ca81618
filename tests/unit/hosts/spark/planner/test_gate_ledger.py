import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.ledger import audit, lives, shed_positions
from spillway.gate.offsets import Offset, decode, encode
from spillway.hosts.spark import files
from spillway.hosts.spark.files import Archive, audits, read_ledger
from spillway.testing import ToyLog, ToySpark, toy_planner


@pytest.fixture
def chain(log: ToyLog, clock: ManualClock) -> list[Offset]:
    log.rate_per_s, log.partitions = 30_000.0, 2
    spark = ToySpark(toy_planner(clock, manager="fixed", **{"manager.keep_fraction": "0.5"}), clock)
    spark.batches(12)
    return [decode(value) for value in spark.logged]


def write(path: Path, chain: list[Offset]) -> None:
    path.write_text("".join(json.dumps(encode(o)) + "\n" for o in chain))


def checkpoint(folder: Path, chain: list[Offset], completed: int) -> Path:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for offset in chain:
        text = "v1\n{}\n" + json.dumps(encode(offset))
        (folder / "offsets" / str(offset.seq)).write_text(text)
        if offset.seq < completed:
            (folder / "commits" / str(offset.seq)).write_text("v1\n{}")
    return folder


def test_a_ledger_of_whole_batches_is_exact(chain: list[Offset]) -> None:
    result = audit(chain)
    assert result.exact
    totals = result.totals
    assert totals.offered == totals.admitted + totals.shed + totals.pending


def test_a_missing_line_is_named(chain: list[Offset]) -> None:
    assert audit(chain[:4] + chain[5:]).missing == (4,)


def test_a_changed_rule_is_noticed(chain: list[Offset]) -> None:
    other = replace(chain[6], rule=replace(chain[6].rule, keep_ppm=chain[6].rule.keep_ppm + 99))
    problems = audit([*chain[:6], other, *chain[7:]]).problems
    assert any("batch 6: admitted" in problem for problem in problems)


def test_a_gap_between_batches_is_noticed(chain: list[Offset]) -> None:
    part = chain[6].stretches[0]
    stretches = (replace(part, start=part.start + 1, read=part.read + 1), *chain[6].stretches[1:])
    problems = audit([*chain[:6], replace(chain[6], stretches=stretches)]).problems
    assert any("starts at" in problem for problem in problems)


@pytest.mark.parametrize("what", ["offered", "lost"])
def test_a_total_that_falls_is_noticed(chain: list[Offset], what: str) -> None:
    before = replace(chain[5], totals=replace(chain[5].totals, **{what: 10**9}))
    problems = audit([*chain[:5], before, *chain[6:]]).problems
    assert any(f"batch 6: {what} falls from 1000000000" in problem for problem in problems)


def test_a_line_that_is_not_what_spark_logged_is_noticed(
    tmp_path: Path, chain: list[Offset]
) -> None:
    other = replace(chain[3], planned_us=chain[3].planned_us + 1)
    write(tmp_path / "ledger", [*chain[:3], other, *chain[4:]])
    folder = checkpoint(tmp_path / "checkpoint", chain, completed=12)
    [result] = audits(tmp_path / "ledger", folder)
    assert result.problems == ("batch 3: the ledger and Spark's offset log differ",)


def test_two_lives_of_one_name_are_audited_apart(chain: list[Offset]) -> None:
    second = [replace(offset, began_us=offset.began_us + 1) for offset in chain]
    assert len(lives([*chain, *second])) == 2


def test_shed_and_kept_positions_make_up_the_batch(chain: list[Offset]) -> None:
    offset = chain[-1]
    for (partition, shed), stretch in zip(shed_positions(offset), offset.stretches, strict=True):
        kept = stretch.kept_positions(offset.rule)
        both = np.sort(np.concatenate((shed, kept)))
        assert partition == stretch.partition
        assert np.array_equal(both, np.arange(stretch.start, stretch.stop))


def test_the_checkpoint_completes_a_ledger_that_lags(tmp_path: Path, chain: list[Offset]) -> None:
    write(tmp_path / "ledger", chain[:8])
    folder = checkpoint(tmp_path / "checkpoint", chain, completed=10)
    [result] = audits(tmp_path / "ledger", folder)
    assert result.exact
    assert result.batches[-1].seq == 9  # the batches that Spark has not completed are not done


def test_a_torn_last_line_is_left_out_and_written_again(
    tmp_path: Path, chain: list[Offset]
) -> None:
    path = tmp_path / "ledger"
    write(path, chain[:5])
    with path.open("a") as file:
        file.write('{"v": 1, "gate": "to')
    assert len(read_ledger(path)) == 5
    archive = Archive(path)
    for offset in chain[3:7]:
        archive.add(encode(offset))
    assert [offset.seq for offset in read_ledger(path)] == list(range(7))


def test_a_long_ledger_is_not_read_from_its_start(
    tmp_path: Path, chain: list[Offset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every batch once, whether the gate's last line is in the tail or far before it."""
    monkeypatch.setattr(files, "_TAIL_BYTES", 2500)  # about two lines
    path = tmp_path / "ledger.jsonl"
    other = [replace(offset, gate="another") for offset in chain]
    write(path, [*chain[:6], *other])
    before = path.read_text()
    path.write_text(before + '{"torn": ')
    reopened = Archive(path)
    for offset in [*other, *chain]:
        reopened.add(encode(offset))
    assert path.read_text().startswith(before)
    found = read_ledger(path)
    assert [o.seq for o in found if o.gate == "another"] == [o.seq for o in other]
    assert [o.seq for o in found if o.gate != "another"] == [o.seq for o in chain]


def test_a_disk_that_refuses_delays_lines_and_nothing_else(
    tmp_path: Path, chain: list[Offset], capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    archive = Archive(blocked / "ledger")
    for offset in chain[:3]:
        archive.add(encode(offset))
    assert capsys.readouterr().err.count("cannot be written") == 1
    blocked.unlink()
    archive.add(encode(chain[3]))
    assert [offset.seq for offset in read_ledger(blocked / "ledger")] == [0, 1, 2, 3]


def test_a_damaged_line_is_named(tmp_path: Path, chain: list[Offset]) -> None:
    write(tmp_path / "ledger", chain[:2])
    with (tmp_path / "ledger").open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(SpillwayError, match="line 3"):
        read_ledger(tmp_path / "ledger")


def test_a_damaged_line_does_not_stop_the_gate(tmp_path: Path, chain: list[Offset]) -> None:
    path = tmp_path / "ledger"
    write(path, chain[:2])
    with path.open("a") as file:
        file.write('nonsense\n{"gate": 1}\n')
    archive = Archive(path)
    for offset in chain[1:4]:
        archive.add(encode(offset))
    lines = path.read_text().splitlines()
    assert [json.loads(line)["seq"] for line in (*lines[:2], *lines[4:])] == [0, 1, 2, 3]


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_the_command_prints_totals_as_json(tmp_path: Path, chain: list[Offset]) -> None:
    write(tmp_path / "ledger", chain)
    code, output = run("ledger", tmp_path / "ledger", "--json")
    [gate] = json.loads(output)["gates"]
    assert code == 0
    assert gate["exact"]
    assert gate["total"]["offered"] == sum(
        gate["total"][k] for k in ("admitted", "shed", "pending")
    )


def test_the_command_fails_when_the_account_does_not_add_up(
    tmp_path: Path, chain: list[Offset]
) -> None:
    write(tmp_path / "ledger", chain[:4] + chain[5:])
    code, _ = run("ledger", tmp_path / "ledger")
    assert code == 1


def test_the_command_prints_the_shed_positions_of_a_batch(
    tmp_path: Path, chain: list[Offset]
) -> None:
    write(tmp_path / "ledger", chain)
    _, output = run("ledger", tmp_path / "ledger", "--positions", "9", "--json")
    shed = json.loads(output)["batches"][0]["shed"]
    assert sum(map(len, shed.values())) == audit(chain).batches[9].shed


def test_leaving_prints_the_offsets_of_the_last_completed_batch(
    tmp_path: Path, chain: list[Offset]
) -> None:
    folder = checkpoint(tmp_path / "checkpoint", chain, completed=6)
    result = CliRunner().invoke(app, ["offsets", str(folder), "--topic", "clicks"])
    stops = {str(s.partition): s.stop for s in chain[5].stretches}
    assert json.loads(result.stdout) == {"clicks": stops}
    assert "batch 11 was begun but not completed" in result.stderr
