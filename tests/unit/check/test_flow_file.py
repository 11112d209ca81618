from pathlib import Path

import pytest

from spillway.check.flow_file import load_flow
from spillway.errors import SpillwayError

GOOD = """\
streams:
  ticks: {source: synthetic, options: {rate: 1000}}
classes:
  gold: {priority: 6, delay: p99 2s}
queries:
  all_ticks:
    class: gold
    sql: SELECT * FROM ticks
    sink: {type: parquet, path: out}
"""


def flow_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "flow.yaml"
    path.write_text(text)
    return path


def test_a_good_flow_is_read_with_its_defaults(tmp_path: Path) -> None:
    flow = load_flow(flow_file(tmp_path, GOOD))
    assert flow.classes["gold"].manager == "predictive"
    assert flow.queries["all_ticks"].class_name == "gold"
    assert flow.spark.master == "local[*,4]"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("p99 2s", "p98 2s", ["flow.yaml:4", "classes.gold.delay", "p98 2s", "p95, p99"]),
        ("priority: 6", "priority: 0", ["flow.yaml:4", "classes.gold.priority", "0", "1"]),
        ("class: gold", "class: glod", ["flow.yaml:7", "glod", "did you mean 'gold'"]),
        ("priority: 6", "prioritty: 6", ["flow.yaml:4", "prioritty", "did you mean 'priority'"]),
        ("    sql: SELECT * FROM ticks\n", "", ["flow.yaml:6: queries.all_ticks: a query needs"]),
        (", path: out", "", ["flow.yaml:9", "queries.all_ticks.sink.path", "missing"]),
        ("source: synthetic", "source: kafak", ["flow.yaml:2", "ticks.source", "mean 'kafka'"]),
        ("type: parquet", "type: paquet", ["flow.yaml:9", "all_ticks.sink", "mean 'parquet'"]),
        ("path: out", "pth: out", ["flow.yaml:9", "all_ticks.sink.pth", "did you mean 'path'"]),
        ("rate: 1000", "tuples: many", ["flow.yaml:2", "'tuples' is 'many'", "a whole number"]),
        ("priority: 6", "manager: alomo", ["flow.yaml:4", "alomo", "did you mean 'aloma'"]),
        ("rate: 1000", "rat: 1000", ["flow.yaml:2", "ticks.options", "did you mean 'rate'"]),
        ("streams:", "streams: [", ["flow.yaml", "is not YAML"]),
    ],
)
def test_an_error_names_file_line_key_value_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, expected: list[str]
) -> None:
    assert old in GOOD
    with pytest.raises(SpillwayError) as caught:
        load_flow(flow_file(tmp_path, GOOD.replace(old, new)))
    for words in expected:
        assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="no flow file at"):
        load_flow(tmp_path / "absent.yaml")
