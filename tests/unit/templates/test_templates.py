from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import add_instances, load_instances, open_store
from spillway.templates.templates import Template

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
    path.write_text("key,size\n7,10 seconds\n8,1 minute\n")
    rows = load_instances(Template.parse("q", WINDOWED), path)
    assert rows == [{"key": 7, "size": "10 seconds"}, {"key": 8, "size": "1 minute"}]
    path.write_text("key,size\n007,10 seconds\nx,1 minute\n")
    rows = load_instances(Template.parse("q", WINDOWED), path)
    assert [row["key"] for row in rows] == ["007", "x"]


def running_store(tmp_path: Path) -> InstanceStore:
    rows = [{"key": 1, "size": "10 s"}, {"key": 2, "size": "1 m"}]
    return open_store(tmp_path / "store", Template.parse("q", WINDOWED), rows)


def test_texts_from_the_command_line_become_the_types_of_the_running_plan(tmp_path: Path) -> None:
    store = running_store(tmp_path)
    assert add_instances(store, "q", [{"key": "7", "size": "10 s"}]) == [3]
    assert store.active()[-1].values == {"key": 7, "size": "10 s"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"key": "x", "size": "10 s"}, "key is STRING here and BIGINT in the running plan"),
        ({"key": 3, "size": "30 s"}, "no window of size '30 s': it has size '1 m'; size '10 s'"),
    ],
)
def test_what_the_running_plan_cannot_take_is_refused(
    tmp_path: Path, row: dict[str, object], expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        add_instances(running_store(tmp_path), "q", [row])


def test_a_later_start_applies_what_the_flow_changed_and_keeps_changes_by_hand(
    tmp_path: Path,
) -> None:
    store, template = running_store(tmp_path), Template.parse("q", WINDOWED)
    store.remove([1])
    store.add([{"key": 9, "size": "1 m"}])
    again = open_store(
        store.path, template, [{"key": 1, "size": "10 s"}, {"key": 4, "size": "1 m"}]
    )
    assert [(i.query_id, i.values["key"]) for i in again.active()] == [(3, 9), (4, 4)]


def test_ids_follow_the_order_of_the_list_also_where_rows_are_equal(tmp_path: Path) -> None:
    rows = [{"key": key, "size": "1 m"} for key in (5, 3, 5, 4)]
    store = open_store(tmp_path / "store", Template.parse("q", WINDOWED), rows)
    assert [(i.query_id, i.values["key"]) for i in store.active()] == [
        (1, 5),
        (2, 3),
        (3, 5),
        (4, 4),
    ]


def test_another_template_cannot_take_over_a_store(tmp_path: Path) -> None:
    running_store(tmp_path)
    other = Template.parse("q", WINDOWED.replace("count(*)", "max(v)"))
    with pytest.raises(SpillwayError, match="template has changed"):
        open_store(tmp_path / "store", other, [{"key": 1, "size": "10 s"}])


def test_what_a_killed_writer_left_is_written_over(tmp_path: Path) -> None:
    store = InstanceStore(tmp_path / "store")
    store.add([{"key": 1}])
    with (tmp_path / "store").open("a") as file:
        file.write('{"version": 2, "add": {"2": {"k')
    assert store.add([{"key": 2}]) == [2]
    assert [i.values for i in store.active()] == [{"key": 1}, {"key": 2}]


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
