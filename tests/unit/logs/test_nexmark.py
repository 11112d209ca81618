import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log

SECONDS = 20


def table(stream: str, rate: int) -> pa.Table:
    options = {"source": "nexmark", "stream": stream, "rate": str(rate), "start": "0"}
    log = open_log({**options, "tuples": str(rate * SECONDS)})
    return pa.Table.from_batches(
        [batch for span in log.extent(1e6) for batch in log.read(span, None)]
    )


@pytest.mark.parametrize(
    ("stream", "rate", "column", "of", "of_rate"),
    [
        ("auction", 300, "seller", "person", 100),
        ("bid", 4600, "auction", "auction", 300),
        ("bid", 4600, "bidder", "person", 100),
    ],
)
def test_what_a_row_names_has_arrived_before_it(
    stream: str, rate: int, column: str, of: str, of_rate: int
) -> None:
    rows, named = table(stream, rate), table(of, of_rate)
    arrival = dict(zip(named["id"].to_pylist(), named["event_time"].to_pylist(), strict=True))
    first = arrival[0]
    for name, moment in zip(rows[column].to_pylist(), rows["event_time"].to_pylist(), strict=True):
        assert arrival[name] <= moment or arrival[name] == first


def test_half_of_the_bids_go_to_hot_auctions() -> None:
    auctions = table("bid", 4600)["auction"].to_numpy()
    assert 0.5 < (auctions % 20 == 0).mean() < 0.6


def test_an_unknown_stream_is_named() -> None:
    with pytest.raises(SpillwayError, match="did you mean 'auction'"):
        open_log({"source": "nexmark", "stream": "auctions"}).columns()
