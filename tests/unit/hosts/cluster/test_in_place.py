"""Changes of queries on one node: what is started and stopped as both sides get on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query
from spillway.hosts.cluster import in_place
from spillway.hosts.cluster.in_place import InPlace
from spillway.hosts.cluster.messages import Reached
from spillway.hosts.cluster.versions import Versions
from spillway.hosts.spark.files import Folder

SQL, OTHER = "SELECT id FROM readings", "SELECT id, id + 1 AS n FROM readings"
AT = {"readings": {0: 7}}


class ToyHanding:
    """Both sides, as far as the test says."""

    def __init__(self, *given: object) -> None:
        self.reached: dict[str, Reached] = {}
        self.forgotten: list[str] = []

    def may_start(self, run: str, duty: object) -> bool:
        return True

    def look(self, duties: object, running: object) -> bool:
        return False

    def said(self) -> dict[str, Reached]:
        return self.reached

    def forget(self, run: str) -> None:
        self.forgotten.append(run)


class ToyApplication:
    def __init__(self, flow: Flow, root: Path) -> None:
        self.flow, self.folder = flow, Folder(root=root)
        self.gates, self.dispatcher = SimpleNamespace(leased=False), SimpleNamespace()
        self.fails: str | None = None
        self.said: list[str] = []

    def add(self, name: str, query: Query) -> None:
        queries = {**self.flow.queries, name: query}
        self.flow = self.flow.model_copy(update={"queries": queries})

    def remove(self, name: str, wait_s: float = 0.0) -> None:
        queries = {n: q for n, q in self.flow.queries.items() if n != name}
        self.flow = self.flow.model_copy(update={"queries": queries})

    def event(self, kind: str, **values: object) -> None:
        self.said.append(f"{values['state']} {values['reason']}")

    def supervise(self) -> None:
        if self.fails is not None:
            raise SpillwayError(self.fails)

    @property
    def texts(self) -> dict[str, str | None]:
        return {name: query.sql for name, query in self.flow.queries.items()}


class World:
    def __init__(self, root: Path) -> None:
        sink = {"type": "kafka", "brokers": "b:1", "topic": "t"}
        self.flow = Flow.model_validate(
            {
                "streams": {"readings": {"source": "synthetic", "options": {"rate": 1}}},
                "classes": {"default": {"delay": "1s"}},
                "queries": {"rows": {"sql": SQL, "sink": sink}, "others": {"sql": SQL}},
            }
        )
        self.root = root
        self.begin()

    def begin(self) -> None:
        """The flow starts, again perhaps."""
        versions = Versions(self.flow, self.root)
        self.application = ToyApplication(versions.running(self.flow), self.root)
        given: Any = self.application
        self.in_place = InPlace(given, self.flow, versions)
        handing: Any = self.in_place._handing
        self.handing: ToyHanding = handing

    def reaches(self, **reached: Reached) -> None:
        self.handing.reached = {run.replace("_", "@"): at for run, at in reached.items()}
        self.in_place.supervise()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(in_place, "Handing", ToyHanding)
    return World(tmp_path)


def test_both_versions_run_until_the_old_one_has_read_up_to_the_cut(world: World) -> None:
    assert world.in_place.look_s > 0.1
    world.in_place.change("rows", {"sql": OTHER}, only_check=False)
    assert world.in_place.look_s == 0.1
    world.in_place.supervise()
    assert world.application.texts == {"rows": SQL, "others": SQL, "rows@2": OTHER}
    world.reaches(rows_2=Reached(read_at=AT))
    assert "rows" in world.application.texts
    world.reaches(rows=Reached(until_at=AT, finished=True))
    assert world.application.texts == {"others": SQL, "rows@2": OTHER}
    assert "rows" in world.handing.forgotten


def test_it_goes_back_and_a_restart_knows(world: World) -> None:
    world.in_place.change("rows", {"sql": OTHER}, only_check=False)
    world.in_place.supervise()
    world.reaches(rows_2=Reached(read_at=AT))
    world.reaches(rows=Reached(until_at=AT, finished=True))
    world.begin()
    assert world.application.texts == {"rows@2": OTHER, "others": SQL}
    world.in_place.change("rows", None, only_check=False)
    world.in_place.supervise()
    world.reaches(rows_3=Reached(read_at=AT))
    world.begin()  # in the middle
    world.in_place.supervise()
    assert world.application.texts == {"rows@2": OTHER, "others": SQL, "rows@3": SQL}
    world.handing.reached = {"rows@2": Reached(until_at=AT, finished=True)}
    world.in_place.supervise()
    assert world.application.texts == {"others": SQL, "rows@3": SQL}


def test_a_version_that_fails_leaves_the_query_as_it_was(world: World) -> None:
    world.in_place.change("rows", {"sql": OTHER}, only_check=False)
    world.in_place.supervise()
    world.application.fails = "query 'rows@2' does not start: no column n"
    world.in_place.supervise()
    world.application.fails = None
    world.in_place.supervise()
    assert world.application.texts == {"rows": SQL, "others": SQL}
    assert any(
        "not changed: query 'rows@2' does not start" in said for said in world.application.said
    )
    world.application.fails = "query 'others' ended 5 times"
    with pytest.raises(SpillwayError, match="others"):
        world.in_place.supervise()


@pytest.mark.parametrize(
    ("name", "version", "reason"),
    [
        ("nobody", {"sql": OTHER}, "nobody"),
        ("rows", None, "never changed"),
        ("rows", {"sql": SQL}, "like that already"),
        ("rows", {"sql": "SELECT count(*) AS n FROM readings"}, "cannot move"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    world: World, name: str, version: dict[str, str] | None, reason: str
) -> None:
    with pytest.raises(SpillwayError, match=reason):
        world.in_place.change(name, version, only_check=False)
    world.in_place.supervise()
    assert world.application.texts == {"rows": SQL, "others": SQL}


def test_only_to_be_checked_changes_nothing(world: World) -> None:
    said = world.in_place.change("rows", {"sql": OTHER}, only_check=True)
    assert any("needs the columns n" in line for line in said)
    world.in_place.supervise()
    assert world.application.texts == {"rows": SQL, "others": SQL}
