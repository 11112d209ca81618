"""What the records of the two logs must hold by their keys.

A record whose body is something else was damaged, or written by hand. It must end nobody: it is
skipped and told, and what its key said before goes on to hold.
"""

from collections.abc import Mapping
from typing import Any

from spillway.coding import from_json
from spillway.errors import SpillwayError, require
from spillway.flow.flow import Query
from spillway.hosts.cluster.control_log import Check
from spillway.hosts.cluster.messages import (
    ANSWER,
    FLOW,
    LEADER,
    NODE,
    QUERY,
    REQUEST,
    Answer,
    Assignment,
    FlowGiven,
    Leadership,
    NodeOrder,
    NodeReport,
    Request,
)
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.table_records import TABLE, TableGiven

Kinds = Mapping[str, type[Any]]

_REPORTS: Kinds = {NODE: NodeReport, REQUEST: Request}
_ASSIGNMENTS: Kinds = {
    LEADER: Leadership,
    FLOW: FlowGiven,
    QUERY: Assignment,
    NODE: NodeOrder,
    TABLE: TableGiven,
    ANSWER: Answer,
}


def _checked_by(kinds: Kinds) -> Check:
    def why_not(record: Record) -> str | None:
        kind = next((kind for key, kind in kinds.items() if record.key.startswith(key)), None)
        if kind is None or record.body is None:
            return None
        try:
            found = from_json(kind, record.body)
            if isinstance(found, Assignment):
                Query.model_validate(dict(found.query))
            if isinstance(found, NodeReport) and found.host is not None:
                require(found.host.capacity.cpu_cores > 0.0, "host", found.host, "of some cores")
        except (
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
            RecursionError,
            SpillwayError,
        ) as error:
            said = " ".join(str(error).split())[:200]
            return f"'{record.key}' of '{record.writer}' is damaged ({said})"
        return None

    return why_not


REPORTS, ASSIGNMENTS = _checked_by(_REPORTS), _checked_by(_ASSIGNMENTS)
