"""The flow of the benchmark of the Kafka source: its query is one that is computed in parts."""

from spillway.check.plan import plan_of
from spillway.flow.reading import columns_read
from spillway_lab.benchmarks.kafka_source.as_flow import _flow
from spillway_lab.benchmarks.kafka_source.asked import NATIVE, Asked, Place
from spillway_lab.benchmarks.kafka_source.side import COMBINED


def test_its_query_reads_partial_rows_of_what_it_needs() -> None:
    place = Place(servers="127.0.0.1:9092", topic="bids", records=1, jars="", core=None)
    flow = _flow(Asked(source=NATIVE, shape=COMBINED, batch=10, share=0.1), place)
    [query] = plan_of(flow).queries
    assert query.reads == "partial rows"
    assert list(columns_read(flow, query.name, "bids") or ()) == ["price", "at"]
    assert flow.classes["default"].law == ("fixed", {"keep_fraction": 0.1})
    assert flow.streams["bids"].options["max_batch"] == "10"
