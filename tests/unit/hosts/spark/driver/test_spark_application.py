"""What an application refuses and remembers before Spark has anything to do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.channel import request_change
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.pools import session_for, task_slots
from spillway.journal.files import read_journal
from spillway.model import (
    Backlog,
    Decided,
    Decision,
    KeepOfBacklog,
    Measurement,
    Report,
    Target,
)

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


@contextmanager
def made(flow: Flow, folder: Path) -> Iterator[Application]:
    context = SimpleNamespace(defaultParallelism=2, master="local[2,4]")
    spark = cast(Any, SimpleNamespace(sparkContext=context))
    application = Application(flow, spark, Folder(root=folder))
    yield application
    application._channel.close()


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    with made(FLOW, tmp_path) as application:
        yield application


def test_a_target_changes_while_it_runs_and_the_journal_says_so(application: Application) -> None:
    application.change("gold.delay", "p99 2s")
    assert application.target("gold") == Target.parse("p99 2s")
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
    turns = application.dispatcher.control.turns
    assert turns.lends
    application.change("control.policy", "none")
    assert not turns.lends
    application.change("control.policy", "absolute")
    assert turns.lends


def report(query: str, class_name: str, pending: int = 5) -> Report:
    return Report(
        query=query,
        class_name=class_name,
        time_s=0.0,
        offered_tuples=5,
        admitted_tuples=0,
        shed_tuples=0,
        completed_tuples=0,
        backlog=Backlog(pending_tuples=pending),
    )


def may_start(application: Application, query: str, class_name: str) -> bool:
    return application.dispatcher.answer(report(query, class_name)).may_start


def test_what_a_gate_decided_goes_to_the_journal(application: Application) -> None:
    measurement = Measurement(
        time_s=12.0,
        period_s=1.0,
        target=Target.parse("1s"),
        offered_tuples=5,
        admitted_tuples=3,
        shed_tuples=2,
        completed_tuples=3,
        queued_tuples=0,
        queued_load_s=0.0,
        offered_load=0.0,
        admitted_load=0.0,
        cost_s=0.0,
        delay_s=None,
        busy_s=0.1,
        class_name="gold",
        query="a",
    )
    decided = Decided(
        measurement=measurement, decision=Decision(action=KeepOfBacklog(tuples=3), reason="3 fit")
    )
    said = replace(report("a", "gold", pending=0), decided=(decided,))
    assert application.dispatcher.answer(said).target == Target.parse("1s")
    assert list(read_journal(application.folder.journal)) == [decided]


def test_a_class_with_a_fixed_share_is_not_told_that_it_is_spared(tmp_path: Path) -> None:
    classes = {
        "gold": {"priority": 6, "delay": "1s", "manager": "fixed"},
        "silver": {"priority": 3, "delay": "1s"},
        "bronze": {"priority": 1, "delay": "4s"},
    }
    flow = Flow.model_validate({**FLOW.model_dump(by_alias=True), "classes": classes})
    with made(flow, tmp_path) as application:
        answer = application.dispatcher.answer
        spared = {name: answer(report(name, name, pending=0)).spared for name in classes}
    assert spared == {"gold": False, "silver": True, "bronze": False}


def test_the_highest_class_keeps_the_last_slot_also_after_priorities_changed(
    application: Application,
) -> None:
    application.change("bronze.priority", "9")
    assert may_start(application, "g1", "gold")
    assert may_start(application, "g2", "gold")
    assert not may_start(application, "g3", "gold")
    assert may_start(application, "b", "bronze")


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


def test_two_queries_of_one_class_do_not_wait_for_each_others_tasks(tmp_path: Path) -> None:
    master, settings = session_for("local[2,4]", {"gold": 6}, tmp_path, queries=2)
    assert (master, settings["spark.default.parallelism"]) == ("local[4,4]", "2")
