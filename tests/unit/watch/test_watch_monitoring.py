"""Alert rules and dashboard: they speak of what is served, and the rules do what they say."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_watch_metrics import NAMES

FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
SERVED = {
    *(f"{name}{suffix}" for name in NAMES for suffix in ("", "_total", "_bucket", "_sum", "_count"))
}
METRIC = re.compile(r"\bspillway_\w+")


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return list(group["rules"])


def panels() -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / "dashboard.json").read_text())["panels"])


def test_rules_and_panels_name_only_what_is_served() -> None:
    named = [rule["expr"] for rule in rules()]
    named += [target["expr"] for panel in panels() for target in panel["targets"]]
    assert {name for text in named for name in METRIC.findall(text)} <= SERVED


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert {"summary", "action"} <= set(rule["annotations"]), rule["alert"]


def test_every_panel_has_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt install prometheus")
@pytest.mark.parametrize("words", [("check", "alerts.yaml"), ("test", "alerts_test.yaml")])
def test_prometheus_takes_the_rules_and_they_fire_when_they_should(words: tuple[str, str]) -> None:
    command = ["promtool", words[0], "rules", words[1]]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt install prometheus")
def test_prometheus_finds_nothing_wrong_with_the_metrics(watched: Any) -> None:
    watched.look()
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=watched.metrics_text(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt install prometheus")
def test_prometheus_reads_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    recorded = [
        {"record": f"panel:{number}", "expr": expr.replace("$class", ".*")}
        for number, expr in enumerate(found)
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    command = ["promtool", "check", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
