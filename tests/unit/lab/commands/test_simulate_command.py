import json
from pathlib import Path

import pytest

from spillway.cli.app import main

QUICK = ["--duration", "20s", "--seed", "3"]


def spillway(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["spillway", "simulate", *words])
    with pytest.raises(SystemExit) as exited:
        main()
    return int(exited.value.code or 0)


@pytest.mark.parametrize("network", ["qn-flat", "micro-batch"])
def test_json_accounts_for_every_tuple(
    network: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--network", network, "--workload", "constant", "--json", *QUICK]
    assert spillway(monkeypatch, *words) == 0
    shown = json.loads(capsys.readouterr().out)
    results = shown["results"]
    passed = results["admitted_tuples"] + results["shed_tuples"] + results["pending_tuples"]
    assert results["offered_tuples"] == passed > 0
    assert results["loss_ratio"] > 0.1
    assert len(shown["periods"]["delay_s"]) == 20


def test_the_same_seed_prints_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for _ in range(2):
        spillway(monkeypatch, "--manager", "ctrl", "--json", *QUICK)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_a_picture_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "run.png"
    assert spillway(monkeypatch, "--manager", "none", "--out", str(picture), *QUICK) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_file_of_arrival_times_is_a_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s\n" + "\n".join(str(i / 10) for i in range(4000)))
    words = ["--workload", str(trace), "--rate", "100", "--json", *QUICK]
    assert spillway(monkeypatch, *words) == 0
    assert json.loads(capsys.readouterr().out)["results"]["offered_tuples"] == 2000


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cost", "-5ms"], "cost is '-5ms'"),
        (["--manager", "ctlr"], "did you mean 'ctrl'"),
        (["--network", "qn-flta"], "did you mean 'qn-flat'"),
        (["--target", "0s"], "delay target is '0s'"),
        (["--rate", "-3"], "rate of a workload"),
        (["--workload", "wbe"], "did you mean 'web'"),
        (["--workload", "EMPTY.csv"], "is empty"),
        (["--workload", "BACK.csv"], "decreasing times"),
        (["--set", "headroom=high"], "must be a number above 0"),
        (["--set", "hedroom=0.9"], "hedroom"),
        (["--out", "run.txt"], "ends in .png"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "EMPTY.csv").write_text("")
    (tmp_path / "BACK.csv").write_text("time_s\n1\n3\n2\n")
    monkeypatch.chdir(tmp_path)
    assert spillway(monkeypatch, *words, *QUICK) == 2
    shown = capsys.readouterr().err.strip()
    assert says in shown
    assert shown.count("\n") == 0
