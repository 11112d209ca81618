import numpy as np
import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log, pinned
from spillway.logs.generated import parse_columns, zipf
from spillway.ports import Span

SPAN = Span(partition=0, start=0, stop=100_000)


def table(columns: str, **options: str) -> pa.Table:
    log = open_log(pinned({"source": "synthetic", "columns": columns, **options}, 1.8e9))
    return pa.Table.from_batches(log.read(SPAN, None))


def test_keys_follow_the_zipf_law_exactly_as_asked() -> None:
    keys = table("k key(1000, 1.2)").column("k").to_numpy()
    shares = np.bincount(keys, minlength=1000) / len(keys)
    expected = np.arange(1, 1001) ** -1.2 / (np.arange(1, 1001) ** -1.2).sum()
    error = np.abs(shares - expected) / np.sqrt(expected / len(keys))
    assert error.max() < 5.0
    assert keys.max() < 1000


def test_a_guide_table_draw_is_the_inverse_of_the_distribution() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    law = zipf(5000, 0.8)
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    assert np.array_equal(law(words), np.searchsorted(law.cumulative, uniform, "right"))


def test_columns_are_uniform_and_independent() -> None:
    rows = table("a double(0, 1), b double(0, 1), i int(-2, 3)")
    a, b = rows.column("a").to_numpy(), rows.column("b").to_numpy()
    assert abs(a.mean() - 0.5) < 0.005
    assert np.bincount((a * 20).astype(int)).min() > 4700
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.015
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.015
    assert np.unique(rows.column("i").to_numpy()).tolist() == [-2, -1, 0, 1, 2]


def test_another_seed_gives_other_rows() -> None:
    first, second = table("a double(0, 1)"), table("a double(0, 1)", seed="2")
    a, b = first.column("a").to_numpy(), second.column("a").to_numpy()
    assert not (a == b).any()
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.015


def test_event_times_lie_before_the_arrival_by_at_most_the_lateness() -> None:
    rows = table("t time(2s)")
    late_us = (
        rows.column("_arrival").cast(pa.int64()).to_numpy()
        - rows.column("t").cast(pa.int64()).to_numpy()
    )
    assert late_us.min() >= 0
    assert 1_990_000 < late_us.max() < 2_000_000


def test_a_schema_alone_chooses_generators_by_type() -> None:
    schema = pa.schema(
        [("n", pa.int32()), ("x", pa.float32()), ("s", pa.string()), ("t", pa.timestamp("us"))]
    )
    log = open_log(pinned({"source": "synthetic"}, 1.8e9), schema)
    assert log.columns() == schema
    assert next(iter(log.read(SPAN, None))).num_rows == 20_000


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("k keyy(10)", "did you mean 'key'"),
        ("k key(0)", "column 'k' is key\\(0\\)"),
        ("x double(1, 0)", "column 'x'"),
        ("no-kind", "cannot be read at 'no-kind'"),
        ("", "at least one column"),
    ],
)
def test_a_wrong_column_is_named(columns: str, message: str) -> None:
    with pytest.raises(SpillwayError, match=message):
        parse_columns(columns)


def test_a_type_that_cannot_be_generated_is_named() -> None:
    counts = pa.map_(pa.string(), pa.int32())
    log = open_log({"source": "synthetic"}, pa.schema([("counts", counts)]))
    with pytest.raises(SpillwayError, match="column 'counts' is map"):
        log.columns()


def test_every_type_that_a_stream_may_have_is_generated_but_maps() -> None:
    kinds: list[pa.DataType] = [pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.bool_()]
    kinds += [pa.date32(), pa.binary(), pa.decimal128(3, 3), pa.decimal128(20, 2), pa.string()]
    kinds += [pa.timestamp("us"), pa.timestamp("us", tz="UTC")]
    header = pa.struct([("key", pa.string()), ("value", pa.binary()), ("at", pa.date32())])
    kinds += [pa.list_(header), pa.struct([("inner", pa.list_(pa.float64())), ("n", pa.int64())])]
    wanted = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    log = open_log({"source": "synthetic", "rate": "100", "start": "1000"}, wanted)
    [batch] = log.read(Span(partition=0, start=0, stop=500), None)
    assert batch.schema.types[:-1] == kinds
    assert batch.num_rows == 500
    assert all(column.null_count == 0 for column in batch.columns)
