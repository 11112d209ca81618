"""A control log in memory, and nodes in virtual time that keep to their leases or freeze."""

from dataclasses import dataclass, field
from itertools import count

from spillway.cluster.views import HostState, HostView, OperatorView, QueryView, Resources
from spillway.coding import to_json
from spillway.hosts.cluster.control_log import ControlLog, Latest, OvertakenError
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.leases import NodeLease
from spillway.hosts.cluster.messages import NODE, NodeReport, NodeState, Reached, Seen
from spillway.hosts.cluster.records import Entries, Placed, Record

CLUSTER = "toys"


@dataclass
class MemoryLog:
    records: list[Record] = field(default_factory=list)

    def read(self, position: int) -> Entries:
        found = enumerate(self.records[position:], start=position)
        placed = tuple(Placed(position=at, record=record) for at, record in found)
        return Entries(placed=placed, next=len(self.records))

    def append(self, record: Record, expected: int | None = None) -> int:
        if expected is not None and expected != len(self.records):
            raise OvertakenError("the log has gone on")
        self.records.append(record)
        return len(self.records)

    def close(self) -> None:
        pass


class ToyNode:
    """Beats and carries out as a node does, where a start and a stop take no time."""

    _names = count()

    def __init__(self, name: str, reports: ControlLog, assignments: ControlLog, lease_s: float):
        self.name, self._reports, self._assignments = name, reports, Latest(assignments)
        self.lease = NodeLease(lease_s, lambda: f"{name}#{next(self._names)}")
        self.duties = Duties(node=name)
        self.busy: dict[str, int] = {}
        self.cores: dict[str, float] = {}  # what queries want here
        self.state: NodeState = "running"
        self.superseded = False
        self.reached: dict[str, Reached] = {}  # of queries that move
        self.seen: dict[str, Seen] = {}
        self.watch = ""
        self.class_of: dict[str, str] = {}
        self.rates: dict[str, float] = {}  # tuples a second that queries are offered
        self.pinned = False

    def runs(self, query: str, now_s: float) -> bool:
        """Its gate may plan a batch, of whatever checkpoint."""
        found = {run.partition("@")[0] for run in self.busy}
        return query in found and self.lease.holds(now_s)

    def beat(self, now_s: float) -> None:
        self._assignments.read_on()
        if self.superseded or self.lease.lapsed(now_s):
            return
        self.duties.read(self._assignments, self.lease.life.name)
        if self.duties.is_superseded(self.lease.lives):
            self.superseded, self.busy = True, {}
            return
        life = self.lease.life
        report = NodeReport(
            life=life.name,
            before=life.before,
            lease_s=self.lease.lease_s,
            state=self.state,
            applied=self.duties.applied,
            running=dict(self.busy),
            reached=dict(self.reached),
            host=self._host(),
            queries=self._queries(),
            states=dict.fromkeys(self.busy, "running"),
            seen=dict(self.seen),
            watch=self.watch,
        )
        body = to_json(NodeReport, report)
        record = Record(cluster=CLUSTER, key=NODE + self.name, epoch=1, writer=life.name, body=body)
        self._reports.append(record)
        self.lease.reported(life.name, now_s, now_s)

    def carry_out(self, now_s: float) -> None:
        if self.superseded:
            return
        if self.lease.lapsed(now_s):
            self.busy = {}
            self.lease.begin_anew()
            self.duties.queries = {}
            return
        wanted = {name: duty.epoch for name, duty in self.duties.queries.items()}
        self.busy = {n: e for n, e in self.busy.items() if wanted.get(n) == e}
        if self.lease.holds(now_s):
            self.busy |= {name: epoch for name, epoch in wanted.items() if name not in self.busy}

    def _host(self) -> HostView:
        operators = tuple(
            OperatorView(
                name=query,
                queries=(query,),
                use=Resources(cpu_cores=self.cores.get(query, 0.1)),
                true_rate_per_s=1.0 / self.cores.get(query, 0.1),
            )
            for query in self.busy
        )
        capacity = Resources(cpu_cores=1.0, memory_mb=1e6, network_mb_per_s=1e6)
        state: HostState = "pinned" if self.pinned else "running"
        return HostView(name=self.name, capacity=capacity, operators=operators, state=state)

    def _queries(self) -> tuple[QueryView, ...]:
        return tuple(
            QueryView(
                name=query,
                class_name=self.class_of.get(query, "default"),
                priority=1,
                operators=(query,),
                offered_rate_per_s=self.rates.get(query, 1.0),
            )
            for query in self.busy
        )
