"""What is kept of queries that were changed while they ran; what a flow file may still change."""

from dataclasses import replace
from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.cluster.messages import Successor
from spillway.hosts.cluster.versions import Versions

OTHER = "SELECT id, key FROM readings"


def flow(sql: str = "SELECT id FROM readings", password: str = "secret") -> Flow:
    options = {"rate": 1, "columns": "id position, key key(5)"}
    sink = {"type": "kafka", "brokers": "b:1", "topic": "t", "kafka.sasl.password": password}
    return Flow.model_validate(
        {
            "streams": {"readings": {"source": "synthetic", "options": options}},
            "classes": {"default": {"delay": "1s"}},
            "queries": {"rows": {"sql": sql, "sink": sink}},
        }
    )


def changed(versions: Versions) -> None:
    given = versions.of("rows")
    query = {**given.query, "sql": OTHER}
    versions.put("rows", replace(given, query=query, before=given.query, generation=2, newest=2))


def test_a_query_that_was_never_changed_is_the_files(tmp_path: Path) -> None:
    versions = Versions(flow(), tmp_path)
    assert versions.running(flow()) == flow()
    assert versions.of("rows").generation == 1


def test_a_changed_query_stays_changed_and_goes_on_on_its_own_checkpoint(tmp_path: Path) -> None:
    changed(Versions(flow(), tmp_path))
    again = Versions(flow(), tmp_path)
    assert {n: q.sql for n, q in again.running(flow()).queries.items()} == {"rows@2": OTHER}
    before = again.of("rows").before
    assert before is not None
    assert before["sql"] == "SELECT id FROM readings"


def test_what_cannot_be_changed_while_it_runs_is_the_files_and_no_password_is_kept(
    tmp_path: Path,
) -> None:
    changed(Versions(flow(), tmp_path))
    assert "secret" not in (tmp_path / "versions.json").read_text()
    again = Versions(flow(password="another"), tmp_path)
    sink = again.of("rows").query["sink"]
    assert sink["kafka.sasl.password"] == "another"


def test_a_change_that_was_given_up_leaves_the_text_to_the_file(tmp_path: Path) -> None:
    versions = Versions(flow(), tmp_path)
    versions.put("rows", replace(versions.of("rows"), newest=2, reason="not changed"))
    edited = flow("SELECT key FROM readings")
    again = Versions(edited, tmp_path)
    assert again.running(edited) == edited
    assert again.of("rows").newest == 2


@pytest.mark.parametrize(("state", "goes_on"), [("follows", False), ("cuts", True)])
def test_of_a_change_under_way_only_what_was_promised_goes_on(
    tmp_path: Path, state: str, goes_on: bool
) -> None:
    versions = Versions(flow(), tmp_path)
    given = versions.of("rows")
    query = {**given.query, "sql": OTHER}
    after = Successor(query=query, generation=2, state=state, node="here", life="here")  # type: ignore[arg-type]
    versions.put("rows", replace(given, changes_to=query, next=after))
    again = Versions(flow(), tmp_path).of("rows")
    assert (again.next == after) is goes_on
    assert again.changes_to == query


def test_a_damaged_file_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "versions.json").write_text("{")
    with pytest.raises(SpillwayError, match=r"versions.json.*restore it") as refused:
        Versions(flow(), tmp_path)
    assert "\n" not in str(refused.value)
