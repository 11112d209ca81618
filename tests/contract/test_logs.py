"""What every log promises the gate."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import log_cases
import numpy as np
import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import MODULES, STARTED, open_log, options_of
from spillway.logs.schema import with_arrival
from spillway.options import read
from spillway.ports import Log, Span

LOCAL = [pytest.param(make, id=make.__name__) for make in log_cases.LOCAL]
KAFKA = [pytest.param(make, id=make.__name__, marks=pytest.mark.kafka) for make in log_cases.KAFKA]


@pytest.fixture(scope="module", params=LOCAL + KAFKA)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> log_cases.Case:
    if request.param in log_cases.KAFKA:
        return request.param(request.getfixturevalue("kafka_broker"))
    return request.param(tmp_path_factory.mktemp("log"))


@pytest.fixture
def log(case: log_cases.Case) -> Log:
    return open_log(case.options, case.schema)


def rows(log: Log, span: Span, wanted: np.ndarray | None = None) -> pa.Table:
    return pa.Table.from_batches(
        log.read(span, wanted), schema=with_arrival(log.columns())
    ).combine_chunks()


def spans(log: Log, case: log_cases.Case) -> Iterator[Span]:
    found = log.extent(case.now_s)
    assert sum(span.tuples for span in found) > 1000, "the case is too small to show anything"
    yield from found


def arrivals_s(table: pa.Table) -> np.ndarray:
    return table.column("_arrival").cast(pa.int64()).to_numpy() / 1e6


def test_every_position_of_the_extent_has_one_row(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        assert rows(log, span).num_rows == span.tuples


def test_a_position_never_changes_its_row(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        first = rows(log, span)
        log.extent(case.now_s + 100.0)
        assert rows(log, span).equals(first)


def test_opening_again_gives_the_same_rows(log: Log, case: log_cases.Case) -> None:
    again = open_log(dict(case.options), case.schema)
    for span in spans(log, case):
        assert rows(again, span).equals(rows(log, span))


def test_a_pickled_log_gives_the_same_rows(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        whole = rows(log, span)
        assert rows(pickle.loads(pickle.dumps(log)), span).equals(whole)


@pytest.mark.parametrize("keep_fraction", [0.5, 0.01])
def test_wanted_rows_are_those_of_a_full_read(
    log: Log, case: log_cases.Case, keep_fraction: float
) -> None:
    rng = np.random.default_rng(3)
    for span in spans(log, case):
        local = np.flatnonzero(rng.random(span.tuples) < keep_fraction)
        expected = rows(log, span).take(pa.array(local))
        assert rows(log, span, span.start + local).equals(expected)


def test_parts_of_a_span_make_up_the_whole(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        cuts = [span.start, span.start + 1, (span.start + span.stop) // 3, span.stop - 1, span.stop]
        parts = [rows(log, replace(span, start=start, stop=stop)) for start, stop in pairwise(cuts)]
        assert pa.concat_tables(parts).combine_chunks().equals(rows(log, span))


def test_nothing_wanted_is_nothing_read(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        nothing = np.empty(0, dtype=np.int64)
        assert rows(log, span, nothing).num_rows == 0
        assert rows(log, replace(span, stop=span.start)).num_rows == 0


def test_the_arrival_curve_agrees_with_the_rows(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        curve = log.arrivals(span)
        assert (curve.positions[0], curve.positions[-1]) == (span.start, span.stop)
        assert (np.diff(curve.positions) > 0).all()
        seen_s = arrivals_s(rows(log, span))
        planned_s = curve.times_of(np.arange(span.start, span.stop))
        assert np.abs(planned_s - seen_s).max() <= case.tolerance_s
        if case.exact_points:
            at_points_s = seen_s[curve.positions[1:] - span.start - 1]
            assert np.abs(curve.times_s[1:] - at_points_s).max() < 1e-6
        if case.ascending:
            assert (np.diff(curve.times_s) >= 0).all()


def test_the_arrival_curve_of_a_part_is_part_of_the_curve(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        part = replace(span, start=span.start + span.tuples // 3, stop=span.stop - 5)
        whole_s = log.arrivals(span).times_of(np.arange(part.start, part.stop))
        part_s = log.arrivals(part).times_of(np.arange(part.start, part.stop))
        assert np.abs(whole_s - part_s).max() <= 2 * case.tolerance_s


def test_tuples_show_when_they_arrive_and_not_before(log: Log, case: log_cases.Case) -> None:
    if case.options["source"] not in ("synthetic", "replay"):
        pytest.skip("this log's arrivals do not follow the time that is passed in")
    for now_s in np.linspace(log_cases.START_S - 1.0, case.now_s, 23):
        for span in log.extent(now_s):
            seen_s = arrivals_s(rows(log, span))
            assert (seen_s <= now_s + 1e-6).all()
            beyond = replace(span, start=span.stop, stop=span.stop + 1)
            if span.stop < log.extent(case.now_s)[span.partition].stop:
                assert arrivals_s(rows(log, beyond))[0] > now_s - 1e-6


def test_the_extent_never_goes_back(log: Log, case: log_cases.Case) -> None:
    before = {span.partition: span for span in log.extent(case.now_s)}
    for later_s in (0.0, 0.5, 60.0):
        for span in log.extent(case.now_s + later_s):
            assert span.stop >= before[span.partition].stop
            assert span.start >= before[span.partition].start
            before[span.partition] = span


def test_batches_have_the_columns_that_were_promised(log: Log, case: log_cases.Case) -> None:
    for span in spans(log, case):
        for batch in log.read(span, None):
            assert batch.schema.equals(with_arrival(log.columns()))
    assert case.schema is None or log.columns().equals(case.schema)


def test_a_column_that_is_not_there_is_named_before_anything_is_read(case: log_cases.Case) -> None:
    if "decode" not in case.options and case.options["source"] == "kafka":
        case = replace(case, options={**case.options, "decode": "raw"})
    options = {**case.options}
    if options["source"] == "synthetic":
        options["columns"] = "a position"
    wanted = pa.schema([("no_such_column", pa.int64())])
    with pytest.raises(SpillwayError, match="no_such_column"):
        open_log(options, wanted).columns()


def test_commits_are_taken_by_every_log(log: Log, case: log_cases.Case) -> None:
    log.commit({span.partition: span.stop for span in spans(log, case)})


@pytest.mark.parametrize("source", sorted(MODULES))
def test_making_a_log_touches_nothing(source: str) -> None:
    options = {
        "source": source,
        "path": "/no/such/file.csv",
        "topic": "none",
        "kafka.bootstrap.servers": "127.0.0.1:1",
    }
    open_log(options, None)


@pytest.mark.parametrize("source", sorted(MODULES))
def test_every_option_says_what_it_means_and_has_a_default_that_can_be_read(source: str) -> None:
    options = options_of(source)
    assert all(option.meaning for option in options)
    read([replace(option, required=False) for option in options], {})
    assert (source in STARTED) == any(option.name == "start" for option in options)


def test_an_unknown_log_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(SpillwayError, match="did you mean 'synthetic'"):
        open_log({"source": "syntetic"})
    with pytest.raises(SpillwayError, match="'source' is missing"):
        open_log({})
