from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.sinks import python
from spillway.sinks.catalog import (
    MODULES,
    BatchWise,
    guarantee_of,
    meaning_of,
    options_of,
    require_ready,
)
from spillway.sinks.console import shown
from spillway.sinks.fence import Fence


def flow_with(sink: dict[str, object]) -> Flow:
    return Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic"}},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": {"sql": "SELECT * FROM ticks", "sink": sink}},
        }
    )


def test_a_function_that_is_there_is_ready() -> None:
    require_ready(flow_with({"type": "python", "call": "json:dumps"}))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("no_such_module:f", "module 'no_such_module' cannot be imported"),
        ("json:no_such_function", "'json' has no function 'no_such_function'"),
    ],
)
def test_a_function_that_is_not_there_is_named_before_spark_starts(
    call: str, expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        require_ready(flow_with({"type": "python", "call": call}))


@pytest.mark.parametrize("sink", MODULES)
def test_a_sink_says_what_it_does_and_what_a_crash_does_to_it(sink: str) -> None:
    assert meaning_of(sink).endswith(".")
    assert guarantee_of(sink)
    assert all(option.meaning for option in options_of(sink))


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        ({"type": "parquet"}, "queries.q.sink.path is missing: it is the folder"),
        ({"type": "noop", "path": "x"}, "queries.q.sink.path is not known to sink 'noop'"),
        ({"type": "paket"}, "queries.q.sink.type: unknown sink 'paket'"),
        ({"type": "python", "call": "f"}, "queries.q.sink.call is 'f': it must be text such as"),
        (
            {"type": "jdbc", "url": "postgresql://h/d", "table": "t", "key": ["a b"]},
            r"queries.q.sink.key is \['a b'\]",
        ),
    ],
)
def test_a_bad_option_of_a_sink_is_named_with_its_place(
    sink: dict[str, object], expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        require_ready(flow_with(sink))


def test_the_console_says_whose_rows_it_shows() -> None:
    start = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
    period = {"start": start, "end": start + timedelta(seconds=10, milliseconds=500)}
    rows = pa.table({"period": [period] * 25, "mean": [1 / 3] * 25, "key": [None, *range(24)]})
    first, header, row, *_, last = shown("prices", 7, rows).splitlines()
    assert first == "prices, batch 7: 25 rows"
    assert header.split() == ["period", "mean", "key"]
    assert row.split("  ")[1:] == [
        "2024-05-01 12:00:00 to 2024-05-01 12:00:10.500",
        "0.333333",
        "None",
    ]
    assert last == "  and 5 more"


def test_a_function_is_told_the_generation_only_where_it_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr("json.dumps", lambda *given: calls.append(given[1:]))
    rows = SimpleNamespace(toArrow=lambda: None)
    writer = SimpleNamespace(foreachBatch=lambda write: write(rows, 7))
    fence = Fence(owner="c/q", generation=3, epoch=1)
    for generations in (False, True):
        given = {"call": "json:dumps", "generations": generations}
        python.open_fenced_sink("q", given, fence)(writer)
    assert calls == [(7,), (7, 3)]


def test_a_sink_gets_the_part_of_a_batch_that_is_its_own() -> None:
    written: list[tuple[Any, int]] = []
    writer = SimpleNamespace(foreachBatch=lambda write: write(5, 7))

    def part(rows: Any, batch: int) -> Any:
        return rows + batch

    BatchWise(writer, part).foreachBatch(lambda rows, batch: written.append((rows, batch)))
    assert written == [(12, 7)]
