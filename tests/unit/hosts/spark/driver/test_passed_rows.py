"""Of derived streams goes what every query has read, and nothing that one may still ask for."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from spillway.flow.derived import expanded
from spillway.flow.flow import Flow
from spillway.gate.offsets import Offset, encode
from spillway.gate.rules import Stretch
from spillway.hosts.spark.driver.passed import LOOK_S, PassedRows
from spillway.hosts.spark.files import Folder
from spillway.logs.sink_index import SinkIndex

sys.path.insert(0, str(Path(__file__).parents[4] / "contract"))
from log_cases import write_batch

HOUR_S = 3600.0
READS = {"hot": ["events"], "a": ["hot"], "b": ["hot", "events"]}


def flow(folder: Path, **stream: str) -> Flow:
    hot = {"from_sql": "SELECT key FROM events", **stream}
    queries = {
        "a": {"class": "gold", "sql": "SELECT * FROM hot"},
        "b": {"class": "gold", "sql": "SELECT h.key FROM hot AS h JOIN events AS e USING (key)"},
    }
    value = {
        "streams": {"events": {"source": "synthetic", "options": {"rate": 10}}, "hot": hot},
        "classes": {"gold": {"delay": "1s"}},
        "queries": queries,
    }
    return expanded(Flow.model_validate(value), folder / "streams")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Five files of ten rows each, the last one written at 1005 s."""
    table = pa.table({"key": pa.array(range(10), pa.int64())})
    for batch in range(5):
        write_batch(tmp_path / "streams" / "hot", batch, [table], 1001.0 + batch)
    return Folder(root=tmp_path)


def has_logged(folder: Folder, query: str, batch: int, start: int, stop: int) -> None:
    stretches = (Stretch(partition=0, start=start, read=start, stop=stop),)
    lines = ["v1", "{}"]
    for stream in READS[query]:
        offset = Offset(
            gate=f"{query}/{stream}", began_us=1, seq=batch, planned_us=0, stretches=stretches
        )
        lines.append(json.dumps(encode(offset)))
    path = folder.checkpoint(query) / "offsets" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def first_left(folder: Folder) -> int:
    index = SinkIndex(str(folder.root / "streams" / "hot"))
    index.refresh()
    return index.first


def look(folder: Folder, now_s: float, **stream: str) -> int:
    PassedRows(flow(folder.root, **stream), folder).look(READS, now_s)
    return first_left(folder)


def test_the_slowest_reader_holds_what_its_last_batch_may_read_again(folder: Folder) -> None:
    has_logged(folder, "a", 7, 40, 50)
    has_logged(folder, "b", 2, 10, 20)
    has_logged(folder, "b", 3, 20, 40)
    assert look(folder, 1006.0 + HOUR_S) == 20


def test_a_reader_that_has_not_begun_holds_everything(folder: Folder) -> None:
    has_logged(folder, "a", 7, 40, 50)
    assert look(folder, 1e9) == 0


def test_what_was_read_stays_for_an_hour_or_as_long_as_the_flow_says(folder: Folder) -> None:
    for query in ("a", "b"):
        has_logged(folder, query, 7, 40, 50)
    assert look(folder, 1002.5 + HOUR_S) == 20
    assert look(folder, 1002.5 + 60.0, keep="1m") == 20, "there already, and not more"
    assert look(folder, 1003.5 + 60.0, keep="1m") == 30


def test_it_is_looked_at_now_and_then(folder: Folder) -> None:
    rows = PassedRows(flow(folder.root, keep="1s"), folder)
    rows.look(READS, 2000.0)
    for query in ("a", "b"):
        has_logged(folder, query, 7, 40, 50)
    rows.look(READS, 2000.0 + LOOK_S / 2.0)
    assert first_left(folder) == 0
    rows.look(READS, 2000.0 + LOOK_S)
    assert first_left(folder) == 40


def test_a_log_of_ones_own_is_never_touched(folder: Folder) -> None:
    own = {"source": "files", "options": {"path": str(folder.root / "streams" / "hot")}}
    value = {
        "streams": {"hot": own},
        "classes": {"gold": {"delay": "1s"}},
        "queries": {"a": {"class": "gold", "sql": "SELECT * FROM hot"}},
    }
    has_logged(folder, "a", 7, 40, 50)
    PassedRows(Flow.model_validate(value), folder).look({"a": ["hot"]}, 1e9)
    assert first_left(folder) == 0


def test_what_is_damaged_is_said_once_and_ends_nothing(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    for query in ("a", "b"):
        has_logged(folder, query, 7, 40, 50)
    (folder.checkpoint("b") / "offsets" / "7").write_text("v1\n{}\n{")
    rows = PassedRows(flow(folder.root, keep="1s"), folder)
    for look in range(3):
        rows.look(READS, 1e6 + look * LOOK_S)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "rows of 'hot' cannot be deleted" in said
    assert first_left(folder) == 0


def test_keep_is_refused_where_it_means_nothing() -> None:
    value = {"source": "synthetic", "options": {"rate": 10}, "keep": "1h"}
    with pytest.raises(ValueError, match="keep is for derived streams"):
        Flow.model_validate(
            {
                "streams": {"s": value},
                "classes": {"c": {"delay": "1s"}},
                "queries": {"q": {"class": "c", "sql": "SELECT * FROM s"}},
            }
        )
