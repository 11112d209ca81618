"""Queries in DataFrame code: a function's arguments are the streams that it reads."""

import sys
from pathlib import Path
from typing import Any

import pytest

from spillway.api import Flow
from spillway.check.flow_file import load_flow
from spillway.check.plan import plan_of
from spillway.errors import SpillwayError
from spillway.flow.frames import arguments_of, function_of

MODULE = """
raise_if_run = 1 / 0

def large(ticks):
    return ticks.where("value > 0.9")

def joined(ticks, quotes):
    return ticks.join(quotes, "key")

def nothing():
    return None
"""
FLOW = """
streams:
  ticks: {{source: synthetic, event_time: event_time}}
  quotes: {{source: synthetic}}
classes: {{gold: {{delay: 2s}}}}
queries:
  q:
    class: gold
    python: "{code}"
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "team_jobs.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path])


def flow(tmp_path: Path, code: str, more: str = "") -> Any:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW.format(code=code) + more)
    return load_flow(path)


def test_the_streams_are_known_without_running_the_module(tmp_path: Path) -> None:
    [query] = plan_of(flow(tmp_path, "team_jobs:large")).queries
    assert query.gates == ("q/ticks",)
    [query] = plan_of(flow(tmp_path, "team_jobs:joined")).queries
    assert query.gates == ("q/ticks", "q/quotes")
    with pytest.raises(SpillwayError, match=r"'team_jobs' cannot be imported \(ZeroDivisionError"):
        function_of("q", "team_jobs:large")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("team_jbs:large", "there is no module 'team_jbs'"),
        ("team_jobs:larg", "has no function 'larg' at its top"),
        ("team_jobs:nothing", "takes no argument: name the streams to read"),
        ("team_jobs", "it must be module:function"),
    ],
)
def test_what_is_not_there_is_told_at_its_line(tmp_path: Path, code: str, told: str) -> None:
    with pytest.raises(SpillwayError, match=told) as raised:
        flow(tmp_path, code)
    assert "flow.yaml:9" in str(raised.value)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("    estimate: true\n", "estimate works on sql, not on python"),
        ("    error: 5%\n", "error is a budget of sql"),
        ("    sql: SELECT 1 FROM ticks\n", "exactly one of sql, template and python"),
    ],
)
def test_what_needs_sql_is_refused(tmp_path: Path, more: str, told: str) -> None:
    with pytest.raises(SpillwayError, match=told):
        flow(tmp_path, "team_jobs:large", more)


def test_a_function_of_the_program_is_as_good() -> None:
    def large(ticks: Any) -> Any:
        return ticks.where("value > 0.9")

    made = Flow("market")
    made.stream("ticks", source="synthetic")
    made.service_class("gold", delay="2s")
    made.query("q", class_="gold", frame=large)
    [query] = made.plan().queries
    assert query.gates == ("q/ticks",)
    assert arguments_of("q", large) == ("ticks",)
    made.query("q", class_="gold", frame=lambda tickz: tickz)
    with pytest.raises(SpillwayError, match="did you mean 'ticks'"):
        made.model()
