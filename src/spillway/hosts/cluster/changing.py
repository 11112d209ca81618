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
from spillway.hosts.spark.driver.cuts import Cut, Rowwise, cut_of
from spillway.hosts.spark.driver.own_windows import Windowed

CHANGEABLE = ("sql", "partitions")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Both versions, and what a reader of the results has to know."""

    query: Mapping[str, Any]
    before: Cut
    after: Cut
    partitions: int | None

    def said(self) -> list[str]:
        lines = self._of_rows() if isinstance(self.after, Rowwise) else self._of_windows()
        added = [c for c in self.after.columns if c not in self.before.columns]
        gone = [c for c in self.before.columns if c not in self.after.columns]
        if added:
            lines.append(f"the sink needs the columns {', '.join(added)}: add them first")
        if gone:
            lines.append(f"the columns {', '.join(gone)} come no more")
        if self.partitions is not None:
            lines.append(f"its state has {self.partitions} partitions then")
        return lines

    def _of_windows(self) -> list[str]:
        assert isinstance(self.before, Windowed)
        assert isinstance(self.after, Windowed)
        return [
            f"windows are {shown(self.before.window.length_us)} now and"
            f" {shown(self.after.window.length_us)} after the cut: a later time than any row that"
            " either version has read then; windows that start before it are the old version's",
            f"stream '{self.after.streams[0]}' is read again from where the query stands, once by"
            " each version until the old one has finished its last window",
        ]

    def _of_rows(self) -> list[str]:
        streams = ", ".join(f"'{stream}'" for stream in self.after.streams)
        return [
            "rows are the old version's up to the cut and the new one's from there on: a position"
            " that neither version has gone beyond then, in each partition",
            f"{streams}: what comes until then is read by both versions",
        ]


def changed_query(
    name: str, given: Assignment, changes: Mapping[str, Any], flow: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The other version; raises where the query cannot change to it while it runs."""
    return change_of(name, given, changes, flow).query


def change_of(
    name: str, given: Assignment, changes: Mapping[str, Any], flow: Mapping[str, Any]
) -> Change:
    wanted = {key: changes[key] for key in CHANGEABLE if key in changes}
    query = {**given.query, **wanted}
    if query == given.query:
        raise SpillwayError(f"query '{name}' is like that already: nothing changes")
    try:
        whole = Flow.model_validate({**flow, "queries": {name: query}})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SpillwayError(f"query '{name}': {place}: {problem['msg']}") from error
    after = whole.queries[name]
    cuts = both_cuts(name, Query.model_validate(dict(given.query)), after, whole)
    if isinstance(cuts[1], Rowwise) and wanted.get("partitions") is not None:
        raise SpillwayError(f"query '{name}' has no state: it has no partitions to change")
    return Change(query=query, before=cuts[0], after=cuts[1], partitions=after.partitions)


def both_cuts(name: str, query: Query, other: Query, flow: Flow) -> tuple[Cut, Cut]:
    """Where the one version's results end and the other's begin; raises where they do not meet."""
    before, after = cut_of(name, query, flow), cut_of(name, other, flow)
    if before.streams != after.streams:
        reads, would = (", ".join(cut.streams) for cut in (before, after))
        raise SpillwayError(
            f"query '{name}' reads '{reads}' and would read '{would}': a change goes on at the"
            " positions that it has; add a query of another name instead"
        )
    if type(before) is not type(after):
        raise SpillwayError(
            f"query '{name}' cannot change while it runs: one version's results are rows and the"
            " other's are of windows, which are cut at different places; add a query of another"
            " name instead"
        )
    return before, after
