"""What an application refuses and remembers before Spark has anything to do."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.channel import request_change
from spillway.hosts.spark.driver.folder import Folder
from spillway.hosts.spark.session.pools import session_for, task_slots
from spillway.model import Target

FLOW = Flow.model_validate(
    {
        "streams": {"clicks": {"source": "synthetic"}},
        "classes": {
            "gold": {"priority": 6, "delay": "1s"},
            "bronze": {"priority": 1, "delay": "4s"},
        },
        "queries": {
            "a": {"class": "gold", "sql": "SELECT * FROM clicks"},
            "b": {"class": "bronze", "sql": "SELECT * FROM clicks"},
        },
    }
)


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    context = SimpleNamespace(defaultParallelism=2, master="local[2,4]")
    spark = cast(Any, SimpleNamespace(sparkContext=context))
    made = Application(FLOW, spark, Folder(root=tmp_path))
    yield made
    made._channel.close()


def test_a_target_changes_while_it_runs_and_the_journal_says_so(application: Application) -> None:
    application.change("gold.delay", "p99 2s")
    assert application.plant.classes["gold"].target == Target.parse("p99 2s")
    [line] = application.folder.journal.read_text().splitlines()
    assert json.loads(line)["key"] == "gold.delay"


def test_a_change_comes_in_by_the_channel(application: Application) -> None:
    path = str(application._channel.path)
    request_change(path, "bronze.priority", "9")
    assert application.classes["bronze"].priority == 9
    with pytest.raises(SpillwayError, match="unknown class 'golf'"):
        request_change(path, "golf.delay", "1s")


@pytest.mark.parametrize(
    ("key", "to", "said"),
    [
        ("golf.delay", "1s", "golf"),
        ("gold.colour", "red", "colour"),
        ("gold.delay", "soon", "gold.delay cannot become 'soon'"),
        ("gold.priority", "0", "gold.priority cannot become '0'"),
        ("gold.lend", "2", "gold.lend cannot become '2'"),
        ("control.policy", "fair", "fair"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    application: Application, key: str, to: str, said: str
) -> None:
    with pytest.raises(SpillwayError, match=said):
        application.change(key, to)
    assert application.classes == dict(FLOW.classes)
    assert not application.folder.journal.exists()


def test_the_policy_changes_while_it_runs(application: Application) -> None:
    application.change("control.policy", "none")
    application.change("control.policy", "absolute")


def test_the_highest_class_keeps_the_last_slot_also_after_priorities_changed(
    application: Application,
) -> None:
    desk = application._dispatcher
    application.change("bronze.priority", "9")
    assert desk.request("g1", "gold", 1.0, wait_s=0.0)
    assert desk.request("g2", "gold", 1.0, wait_s=0.0)
    assert not desk.request("g3", "gold", 1.0, wait_s=0.0)
    assert desk.request("b", "bronze", 1.0, wait_s=0.0)


def test_every_batch_in_flight_gets_task_slots_of_its_own_on_one_machine(tmp_path: Path) -> None:
    master, settings = session_for("local[2,4]", {"gold": 6, "bronze": 1}, tmp_path)
    assert master == "local[6,4]"
    assert settings["spark.default.parallelism"] == "2"
    assert 'name="gold"' in (tmp_path / "pools.xml").read_text()


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn"])
def test_a_cluster_keeps_its_master(tmp_path: Path, master: str) -> None:
    assert session_for(master, {"gold": 6, "bronze": 1}, tmp_path)[0] == master
    assert task_slots(master) is None


def test_one_class_needs_no_more_task_slots(tmp_path: Path) -> None:
    assert session_for("local[2,4]", {"gold": 6}, tmp_path)[0] == "local[2,4]"
