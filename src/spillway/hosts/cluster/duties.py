"""What a node is to do, pure: its own part of the assignments, and what it says back.

A query is `busy` from before it is started until nothing of it runs any more. Only what the node
has been given in its present life is a duty; everything else that is busy has to stop. Queries go
by `run_name`: both sides of a move may be here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spillway.coding import from_json
from spillway.handover import Positions
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.messages import (
    FLOW,
    LEADER,
    NODE,
    QUERY,
    Assignment,
    FlowGiven,
    NodeOrder,
    Successor,
    run_name,
)
from spillway.hosts.cluster.table_records import TABLE, TableGiven


@dataclass(frozen=True, kw_only=True)
class Duty:
    name: str  # of the query
    epoch: int
    generation: int
    query: Mapping[str, Any]
    reason: str
    from_us: int | None = None  # its own windows start from there on; None: all, or not known yet
    from_at: Positions | None = None  # or its own rows stand there
    move: Successor | None = None  # under way
    follows: int | None = None  # the generation that it is the successor of


@dataclass(kw_only=True)
class Duties:
    """One node's reading of the assignments."""

    node: str
    applied: int = 0
    flow: FlowGiven | None = None
    order: NodeOrder = field(default_factory=NodeOrder)
    queries: Mapping[str, Duty] = field(default_factory=dict)
    table: TableGiven | None = None  # the same object as long as the record is
    led_at: int = -1  # where the leader's last word stands
    _table_at: int = -1
    _was_known: bool = False  # the leader knew one of this process's lives

    def read(self, log: Latest, life: str) -> None:
        """What holds now, for this life."""
        flow, order = log.by_key.get(FLOW), log.by_key.get(NODE + self.node)
        self.flow = None if flow is None else from_json(FlowGiven, flow.record.body or {})
        self.order = NodeOrder()
        if order is not None:
            self.order = from_json(NodeOrder, order.record.body or {})
        led = log.by_key.get(LEADER)
        if led is not None and (led.record.body or {}).get("ended"):
            self.order = NodeOrder(state="stops", reason="the cluster has ended")
        self.led_at = -1 if led is None else led.position
        self._read_table(log)
        found = {}
        for name, placed in log.of(QUERY).items():
            given = from_json(Assignment, placed.record.body or {})
            for duty in duties_of(name, given, (self.node, life)):
                found[run_name(name, duty.generation)] = duty
        self.queries, self.applied = found, log.position

    def _read_table(self, log: Latest) -> None:
        placed = log.by_key.get(TABLE + self.node)
        at = -1 if placed is None else placed.position
        if at != self._table_at:
            self._table_at = at
            body = {} if placed is None else placed.record.body or {}
            self.table = from_json(TableGiven, body) if body else None

    def is_superseded(self, lives: frozenset[str]) -> bool:
        """Another process goes by this name now, and the leader holds with that one."""
        if self.order.life in lives:
            self._was_known = True
            return False
        return self._was_known and self.order.life is not None


def names_of(duties: Mapping[str, Duty]) -> dict[str, str]:
    """Of queries, by run; a successor is nobody's query yet."""
    return {run: duty.name for run, duty in duties.items() if duty.follows is None}


def duties_of(name: str, given: Assignment, me: tuple[str, str]) -> Iterator[Duty]:
    """This life's part in a query."""
    after = given.next
    if (given.node, given.life) == me and given.state == "runs":
        yield Duty(
            name=name,
            epoch=given.epoch,
            generation=given.generation,
            query=given.query,
            reason=given.reason,
            from_us=given.from_us,
            from_at=given.from_at,
            move=after,
        )
    if after is not None and (after.node, after.life) == me and given.state in ("runs", "waits"):
        yield Duty(
            name=name,
            epoch=after.epoch,
            generation=after.generation,
            query=after.query,
            reason=given.reason,
            from_us=after.from_us,
            from_at=after.from_at,
            move=after,
            follows=given.generation,
        )
