"""What a node is to do, pure: its own part of the assignments, and what it says back.

A query is `busy` from before it is started until nothing of it runs any more. Only what the node
has been given in its present life is a duty; everything else that is busy has to stop.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.coding import from_json
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.messages import (
    FLOW,
    LEADER,
    NODE,
    QUERY,
    Assignment,
    FlowGiven,
    NodeOrder,
)
from spillway.hosts.cluster.table_records import TABLE, TableGiven


@dataclass(frozen=True, kw_only=True)
class Duty:
    epoch: int
    given: Assignment


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
            if (given.node, given.life, given.state) == (self.node, life, "runs"):
                found[name] = Duty(epoch=placed.record.epoch, given=given)
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
