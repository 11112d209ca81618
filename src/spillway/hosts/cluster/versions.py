"""The versions of a flow's queries that were changed while it ran, on one node, kept in its folder.

What was changed stays so after a restart, whatever the flow file says, until it is changed back. A
version is only what can be changed: the rest of the query, its sink's passwords too, is the flow
file's alone.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query
from spillway.hosts.cluster.changing import CHANGEABLE
from spillway.hosts.cluster.handovers import resting
from spillway.hosts.cluster.messages import Assignment, run_name
from spillway.private import write_private

Version = Mapping[str, Any]
HERE = "here"  # the only node, and its only life


class Versions:
    def __init__(self, flow: Flow, root: Path) -> None:
        self._path = root / "versions.json"
        self._bodies = {
            name: query.model_dump(by_alias=True) for name, query in flow.queries.items()
        }
        self.given = {
            name: self._whole(name, stored)
            for name, stored in self._stored().items()
            if name in self._bodies
        }

    def of(self, name: str) -> Assignment:
        """As it runs; a query that was never changed is the flow file's."""
        first = Assignment(query=self._bodies[name], state="runs", node=HERE, life=HERE)
        return self.given.get(name, first)

    def put(self, name: str, given: Assignment) -> None:
        known = {**self.given, name: given}
        text = {n: to_json(Assignment, _bare(given)) for n, given in known.items()}
        try:
            write_private(self._path, json.dumps(text, indent=1))
        except OSError as error:
            raise SpillwayError(f"'{self._path}' cannot be written: {error.strerror}") from error
        self.given = known

    def running(self, flow: Flow) -> Flow:
        """The flow with its queries as they were changed; a successor comes by itself."""
        queries: dict[str, Query] = {}
        for name, query in flow.queries.items():
            if (given := self.given.get(name)) is None:
                queries[name] = query
            else:
                version = Query.model_validate(dict(given.query))
                queries[run_name(name, given.generation)] = version
        return flow.model_copy(update={"queries": queries})

    def _stored(self) -> Mapping[str, Assignment]:
        try:
            value = json.loads(self._path.read_text())
            return {name: from_json(Assignment, given) for name, given in value.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SpillwayError(
                f"'{self._path}' cannot be read ({error}): restore it, it says how queries were"
                " changed and which of their checkpoints go on"
            ) from None

    def _whole(self, name: str, stored: Assignment) -> Assignment:
        """On top of what the flow file says now. A successor that has only followed so far begins
        anew."""
        body, after = self._bodies[name], stored.next
        given = replace(
            stored,
            query=body if stored.generation == 1 else {**body, **stored.query},
            before=None if stored.before is None else {**body, **stored.before},
            changes_to=None if stored.changes_to is None else {**body, **stored.changes_to},
            next=None if after is None else replace(after, query={**body, **after.query}),
        )
        rests = resting(given)
        here = None if rests.next is None else replace(rests.next, node=HERE, life=HERE)
        return replace(rests, next=here)


def _bare(given: Assignment) -> Assignment:
    def version(query: Version) -> Version:
        return {key: query.get(key) for key in CHANGEABLE}

    return replace(
        given,
        query=version(given.query),
        before=None if given.before is None else version(given.before),
        changes_to=None if given.changes_to is None else version(given.changes_to),
        next=None if given.next is None else replace(given.next, query=version(given.next.query)),
    )
