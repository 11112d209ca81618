"""A query's other version: what it is, whether the query can change to it while it runs, and what
will happen then."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query
from spillway.flow.time_windows import shown
from spillway.hosts.cluster.messages import Assignment
from spillway.hosts.spark.driver.own_windows import Windowed, windowed

_CHANGEABLE = ("sql", "partitions")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Both versions, and what a reader of the results has to know."""

    query: Mapping[str, Any]
    before: Windowed
    after: Windowed
    partitions: int | None

    def said(self) -> list[str]:
        lines = [
            f"windows are {shown(self.before.window.length_us)} now and"
            f" {shown(self.after.window.length_us)} after the cut: a later time than any row that"
            " either version has read then; windows that start before it are the old version's",
            f"stream '{self.after.stream}' is read again from where the query stands, once by each"
            " version until the old one has finished its last window",
        ]
        added = [c for c in self.after.columns if c not in self.before.columns]
        gone = [c for c in self.before.columns if c not in self.after.columns]
        if added:
            lines.append(f"the sink needs the columns {', '.join(added)}: add them first")
        if gone:
            lines.append(f"the columns {', '.join(gone)} come no more")
        if self.partitions is not None:
            lines.append(f"its state has {self.partitions} partitions then")
        return lines


def changed_query(
    name: str, given: Assignment, changes: Mapping[str, Any], flow: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The other version; raises where the query cannot change to it while it runs."""
    return change_of(name, given, changes, flow).query


def change_of(
    name: str, given: Assignment, changes: Mapping[str, Any], flow: Mapping[str, Any]
) -> Change:
    wanted = {key: changes[key] for key in _CHANGEABLE if key in changes}
    query = {**given.query, **wanted}
    if query == given.query:
        raise SpillwayError(f"query '{name}' is like that already: nothing changes")
    try:
        whole = Flow.model_validate({**flow, "queries": {name: query}})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SpillwayError(f"query '{name}': {place}: {problem['msg']}") from error
    before = windowed(name, Query.model_validate(dict(given.query)), whole)
    after = windowed(name, whole.queries[name], whole)
    if before.stream != after.stream:
        raise SpillwayError(
            f"query '{name}' reads '{before.stream}' and would read '{after.stream}': a change"
            " goes on at the positions that it has; add a query of another name instead"
        )
    return Change(
        query=query, before=before, after=after, partitions=whole.queries[name].partitions
    )
