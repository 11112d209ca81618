from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.queries.instance_store import InstanceStore
from spillway.queries.instances import load_instances
from spillway.queries.templates import Template

WINDOWED = "SELECT count(*) AS n FROM t WHERE k = :key GROUP BY window(ts, :size)"


def test_durations_of_windows_must_be_literals_and_other_parameters_need_not() -> None:
    template = Template.parse("q", WINDOWED)
    assert template.parameters == ("key", "size")
    assert template.literal_parameters == ("size",)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t WHERE a = :x ORDER BY a", "ORDER BY"),
        ("SELECT * FROM t WHERE a = :x LIMIT 5", "LIMIT"),
        ("SELECT * FROM t RIGHT JOIN u ON t.a = u.a WHERE t.b = :x", "RIGHT JOIN"),
        ("SELECT * FROM t WHERE a IN (SELECT a FROM u WHERE b = :x)", "subquery"),
        ("SELECT :x AS x FROM t GROUP BY window(ts, :x)", "both as a window's duration"),
    ],
)
def test_what_has_no_meaning_per_instance_is_refused(sql: str, expected: str) -> None:
    with pytest.raises(SpillwayError, match=expected):
        Template.parse("q", sql)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"key": 1}], "size is missing"),
        ([{"key": 1, "size": "10 s", "extra": 2}], "extra is no parameter"),
        ([{"key": 1, "size": "soon"}], "must be a positive number with a unit"),
        ([], "is empty"),
    ],
)
def test_bad_instances_are_refused_by_name(rows: list[dict[str, object]], expected: str) -> None:
    with pytest.raises(SpillwayError, match=expected):
        load_instances(Template.parse("q", WINDOWED), rows)


def test_instances_come_from_a_csv_with_numbers_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "instances.csv"
    path.write_text("key,size\n7,10 seconds\nx,1 minute\n")
    rows = load_instances(Template.parse("q", WINDOWED), path)
    assert rows == [{"key": 7, "size": "10 seconds"}, {"key": "x", "size": "1 minute"}]


def test_ids_are_never_reused_and_every_change_has_a_version(tmp_path: Path) -> None:
    store = InstanceStore(tmp_path / "store")
    assert store.version() == 0
    assert store.add([{"key": 1}, {"key": 2}]) == [1, 2]
    store.remove([2])
    assert store.add([{"key": 3}]) == [3]
    assert store.version() == 3
    assert [i.query_id for i in store.active()] == [1, 3]
    gone = next(i for i in store.instances() if i.query_id == 2)
    assert (gone.added, gone.removed) == (1, 2)


def test_a_change_that_is_half_written_is_not_seen_yet(tmp_path: Path) -> None:
    store = InstanceStore(tmp_path / "store")
    store.add([{"key": 1}])
    with (tmp_path / "store").open("a") as file:
        file.write('{"version": 2, "add": {"2": {"k')
    assert store.version() == 1


def test_only_active_instances_can_be_removed(tmp_path: Path) -> None:
    store = InstanceStore(tmp_path / "store")
    with pytest.raises(SpillwayError, match="instance 5 is not active"):
        store.remove([5])
