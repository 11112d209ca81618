"""What the leader is about to write. It reads as if it had been written already."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from spillway.coding import from_json, to_json
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.messages import (
    ANSWER,
    FLOW,
    NODE,
    QUERY,
    Answer,
    Assignment,
    FlowGiven,
    NodeOrder,
)
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.table_records import TABLE, TableGiven

Body = TypeVar("Body")
UNWRITTEN = 2**62  # the position of what nobody can have read yet


class Draft:
    def __init__(self, log: Latest, cluster: str, me: str) -> None:
        self._log, self._cluster, self._me = log, cluster, me
        self._changed: dict[str, Mapping[str, Any] | None] = {}
        self._decoded: dict[str, Any] = {}  # by key: thousands are looked at several times

    @property
    def flow(self) -> FlowGiven | None:
        return self._one(FlowGiven, FLOW)

    @property
    def queries(self) -> dict[str, Assignment]:
        return self._all(Assignment, QUERY)

    @property
    def lives(self) -> set[str]:
        """Those that hold queries."""
        held = {given.life for given in self.queries.values()}
        held |= {given.next.life for given in self.queries.values() if given.next is not None}
        return held - {None}  # type: ignore[return-value]

    @property
    def orders(self) -> dict[str, NodeOrder]:
        return self._all(NodeOrder, NODE)

    @property
    def answers(self) -> dict[str, Answer]:
        return self._all(Answer, ANSWER)

    @property
    def tables(self) -> dict[str, TableGiven]:
        return self._all(TableGiven, TABLE)

    def position(self, key: str) -> int:
        return UNWRITTEN if key in self._changed else self._log.by_key[key].position

    def put(self, key: str, kind: type[Body], value: Body) -> None:
        self._changed[key] = to_json(kind, value)
        self._decoded[key] = value

    def remove(self, key: str) -> None:
        self._changed[key] = None
        self._decoded[key] = None

    def assign(self, name: str, **changes: Any) -> None:
        given = self._one(Assignment, QUERY + name)
        assert given is not None
        self.put(QUERY + name, Assignment, replace(given, **changes))

    def order(self, name: str, **changes: Any) -> None:
        order = self._one(NodeOrder, NODE + name) or NodeOrder()
        self.put(NODE + name, NodeOrder, replace(order, **changes))

    def records(self) -> list[Record]:
        """Only what differs from what stands there. Epochs are positions, or less: they ascend for
        ever, also where a key comes again."""
        found: list[Record] = []
        for key, body in self._changed.items():
            before = self._log.by_key.get(key)
            if body == (None if before is None else before.record.body):
                continue
            epoch = self._log.position + 1 + len(found)
            found.append(
                Record(cluster=self._cluster, key=key, epoch=epoch, writer=self._me, body=body)
            )
        return found

    def _one(self, kind: type[Body], key: str) -> Body | None:
        if key not in self._decoded:
            body = self._body(key)
            self._decoded[key] = None if body is None else from_json(kind, body)
        found: Body | None = self._decoded[key]
        return found

    def _all(self, kind: type[Body], prefix: str) -> dict[str, Body]:
        keys = [*self._log.by_key, *(key for key in self._changed if key not in self._log.by_key)]
        found = {}
        for key in keys:
            if key.startswith(prefix) and (value := self._one(kind, key)) is not None:
                found[key.removeprefix(prefix)] = value
        return found

    def _body(self, key: str) -> Mapping[str, Any] | None:
        placed = self._log.by_key.get(key)
        return None if placed is None else placed.record.body
