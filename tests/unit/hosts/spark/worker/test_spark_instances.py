from pathlib import Path

from spillway.hosts.spark.worker.instances import Instances, table_of
from spillway.templates.instances import open_store
from spillway.templates.templates import Template

SQL = "SELECT count(*) FROM t WHERE k = :key AND v > :low GROUP BY window(ts, :size)"
ROWS = [
    {"key": "a", "low": 1, "size": "10 s"},
    {"key": 7, "low": 0.5, "size": "1 m"},
    {"key": None, "low": 2, "size": "10 s"},
]


def test_the_table_shows_every_instance_that_ever_was_with_its_shape(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", Template.parse("q", SQL), ROWS)
    store.remove([2])
    table = table_of(store).to_pydict()
    assert table["query_id"] == [1, 2, 3]
    assert table["_added"] == [1, 1, 1]
    assert table["_removed"][1] == 2 < table["_removed"][0]
    assert table["_shape"] == [1, 0, 1]


def test_columns_have_the_narrowest_type_that_holds_all_values(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", Template.parse("q", SQL), ROWS)
    table = table_of(store)
    assert table.column("_p_key").to_pylist() == ["a", "7", None]
    assert table.column("_p_low").to_pylist() == [1.0, 0.5, 2.0]
    source = Instances({"path": str(store.path)})
    assert source.schema().endswith("_p_key STRING, _p_low DOUBLE")


def test_the_table_follows_a_change_of_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", Template.parse("q", SQL), ROWS)
    reader = Instances({"path": str(store.path)}).reader(None)
    [before] = reader.read(None)
    store.add([ROWS[0]])
    [after] = reader.read(None)
    assert (before.num_rows, after.num_rows) == (3, 4)
