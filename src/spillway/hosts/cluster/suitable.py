"""Which flows can run on many nodes, said before anything starts."""

from collections.abc import Mapping

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow

# Results that are in one process are gone with it; the others can be written from any node.
_SINKS: Mapping[str, str] = {
    "memory": "its table is in the memory of one node",
    "console": "it prints on one node",
}


def require_suitable(flow: Flow) -> None:
    """Raises, with the place, for what cannot move from one node to another yet."""
    for name, stream in flow.streams.items():
        if stream.from_sql is not None:
            raise SpillwayError(
                f"streams.{name}.from_sql: a derived stream is a folder of one node's queries and"
                " cannot be on many nodes yet; put its SQL into the queries that read it"
            )
    for name, query in flow.queries.items():
        if query.template is not None:
            raise SpillwayError(
                f"queries.{name}.template: a template keeps its instances in the folder of one run"
                " and cannot be on many nodes yet; run it with `spillway run`"
            )
        if query.sink.type in _SINKS:
            raise SpillwayError(
                f"queries.{name}.sink.type is '{query.sink.type}': {_SINKS[query.sink.type]}; on"
                " many nodes use kafka, jdbc, parquet or noop"
            )
