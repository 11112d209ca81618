import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.templates.instances import open_store
from spillway.templates.templates import Template

RUNNER = CliRunner()
TEMPLATE = Template.parse("q", "SELECT * FROM t WHERE k = :key AND name = :name")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_store(tmp_path / "instances" / "q.jsonl", TEMPLATE, [{"key": 1, "name": "a"}])
    return tmp_path


def call(folder: Path, *arguments: str) -> object:
    result = RUNNER.invoke(
        app, ["instances", *arguments, "--folder", str(folder), "--json"], catch_exceptions=False
    )
    return json.loads(result.stdout)


def test_instances_are_added_listed_and_removed(folder: Path) -> None:
    assert call(folder, "add", "q", "key=7", "name=007") == {"added": [2]}
    assert call(folder, "remove", "q", "1") == {"removed": [1]}
    assert call(folder, "list", "q") == [{"query_id": 2, "key": 7, "name": "007"}]


def test_many_instances_come_from_a_csv(folder: Path) -> None:
    (folder / "more.csv").write_text("key,name\n2,x\n3,04\n")
    assert call(folder, "add", "q", "--csv", str(folder / "more.csv")) == {"added": [2, 3]}
    assert call(folder, "list", "q")[-1] == {"query_id": 3, "key": 3, "name": "04"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("add", "q", "key=1"), "name is missing"),
        (("add", "q", "key"), "write PARAMETER=VALUE"),
        (("add", "q"), "name one instance"),
        (("list", "p"), "unknown query with a template 'p'"),
        (("remove", "q", "9"), "instance 9 is not active"),
    ],
)
def test_bad_calls_say_what_is_wrong(
    folder: Path, arguments: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        call(folder, *arguments)
