"""A flow travels through the control log as it is written: with references to its secrets.

Who reads the log, a folder or topics, learns no password. Every node looks the references up for
itself, in its own environment and in files beside its own copy of the cluster file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from spillway.errors import SpillwayError
from spillway.flow.cluster import Cluster
from spillway.flow.flow import Flow, Query
from spillway.flow.references import filled, tables
from spillway.hosts.cluster.messages import FlowGiven
from spillway.redaction import HIDDEN, is_in_url, is_secret

Found = TypeVar("Found", bound=BaseModel)

_OWN = "cluster"  # of everybody who has the file: it does not travel


def require_references(flow: Mapping[str, Any]) -> None:
    """Raises where a secret is written out."""
    for place, table in tables(flow):
        for key, value in table.items() if place[0] != _OWN else ():
            text = str(value)
            is_reference = "${" in text.replace("$${", "")
            if not is_reference and ((is_secret(key) and text) or is_in_url(text)):
                raise SpillwayError(
                    f"{'.'.join((*place, key))} is a secret that is written out, and the control"
                    " log would hold it: write ${NAME} or ${file:PATH}, which every node looks up"
                    " for itself"
                )


def flow_of(given: FlowGiven, beside: Path) -> Flow:
    """The flow without queries: they come one by one."""
    flow = _validated(Flow, filled({**given.flow, "cluster": {}}, beside), "the flow")
    return flow.model_copy(update={"cluster": None})


def query_of(name: str, body: Mapping[str, Any], beside: Path) -> Query:
    value = filled({"queries": {name: dict(body)}}, beside)["queries"][name]
    return _validated(Query, value, f"query '{name}'")


def _validated(kind: type[Found], value: Any, what: str) -> Found:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SpillwayError(
            f"{what} as the control log has it: {place}: {problem['msg']}"
        ) from None


def said_of(cluster: Cluster) -> dict[str, Any]:
    """For people and programs that ask."""
    told = cluster.model_dump()
    control = cluster.control.items()
    hidden = {k: HIDDEN if is_secret(k) and "${" not in str(v) else v for k, v in control}
    return {**told, "control": hidden}
