"""What the cluster's brain sees: frozen views of hosts, queries and operators.

A plant (simulated or real) fills them in once per control period; every decision is a pure
function of them. A host is one node. Utilisation is CPU in use over CPU capacity, 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# Pinned: an application of its own, whose queries nobody gave it and nobody takes away.
HostState = Literal["starting", "running", "draining", "pinned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """CPU in cores, memory in MB, network in MB per second: a capacity or what is in use."""

    cpu_cores: float = 0.0
    memory_mb: float = 0.0
    network_mb_per_s: float = 0.0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            cpu_cores=self.cpu_cores + other.cpu_cores,
            memory_mb=self.memory_mb + other.memory_mb,
            network_mb_per_s=self.network_mb_per_s + other.network_mb_per_s,
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return self + other * -1.0

    def __mul__(self, factor: float) -> "Resources":
        return Resources(
            cpu_cores=self.cpu_cores * factor,
            memory_mb=self.memory_mb * factor,
            network_mb_per_s=self.network_mb_per_s * factor,
        )

    def fits_in(self, free: "Resources") -> bool:
        return (
            self.cpu_cores <= free.cpu_cores + 1e-9
            and self.memory_mb <= free.memory_mb + 1e-9
            and self.network_mb_per_s <= free.network_mb_per_s + 1e-9
        )


NOTHING = Resources()


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorView:
    """One running operator.

    `use` is what it takes now; on a saturated host that is less than it wants. What it wants
    follows from the true rate: tuples it would process in one second of pure CPU time.
    """

    name: str
    queries: tuple[str, ...]  # more than one when the operator is shared
    use: Resources
    upstream: tuple[str, ...] = ()  # operators that feed it; none for a source
    state_mb: float = 0.0  # 0: stateless
    selectivity: float = 1.0  # tuples out per tuple in
    true_rate_per_s: float = float("inf")  # tuples in per second of one core
    queued_tuples: float = 0.0
    signature: str | None = None  # operators with one signature on one host can be shared

    @property
    def stateful(self) -> bool:
        return self.state_mb > 0.0

    @property
    def shared(self) -> bool:
        return len(self.queries) > 1


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryView:
    """One continuous query; its operators may run on several hosts."""

    name: str
    class_name: str
    priority: int  # of its class; larger is more important
    operators: tuple[str, ...]  # names, from source to sink
    offered_rate_per_s: float = 0.0
    keep_fraction: float = 1.0
    delay_s: float | None = None  # None when nothing completed
    migrating: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassView:
    """A service class on one host, as its class scheduler and load manager report it."""

    name: str
    priority: int
    quota: float  # share of the host that it owns
    load: float = 0.0  # offered load over the host's capacity; above quota it borrows or sheds
    shed_tuples_per_s: float = 0.0
    delay_s: float | None = None
    target_delay_s: float | None = None

    @property
    def violated(self) -> bool:
        if self.delay_s is None or self.target_delay_s is None:
            return False
        return self.delay_s > self.target_delay_s


@dataclass(frozen=True, kw_only=True)
class HostView:
    """One node: its capacity, what runs on it, and how its classes fare."""

    name: str
    capacity: Resources
    operators: tuple[OperatorView, ...] = ()
    classes: tuple[ClassView, ...] = ()
    state: HostState = "running"

    @cached_property
    def use(self) -> Resources:
        used = [operator.use for operator in self.operators]
        return Resources(
            cpu_cores=sum(one.cpu_cores for one in used),
            memory_mb=sum(one.memory_mb for one in used),
            network_mb_per_s=sum(one.network_mb_per_s for one in used),
        )

    @property
    def free(self) -> Resources:
        return self.capacity - self.use

    @property
    def utilisation(self) -> float:
        return self.use.cpu_cores / self.capacity.cpu_cores

    @property
    def query_names(self) -> tuple[str, ...]:
        names = (query for operator in self.operators for query in operator.queries)
        return tuple(dict.fromkeys(names))

    @property
    def signatures(self) -> frozenset[str]:
        """What a query that moves here could share."""
        return frozenset(op.signature for op in self.operators if op.signature is not None)


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """All of it at one moment."""

    time_s: float
    hosts: tuple[HostView, ...]
    queries: tuple[QueryView, ...] = ()
    host_template: Resources | None = None  # capacity of a node that would be started

    @cached_property
    def running(self) -> tuple[HostView, ...]:
        return tuple(host for host in self.hosts if host.state == "running")

    @cached_property
    def sharing(self) -> tuple[HostView, ...]:
        """Those whose classes are one with those of the others."""
        return tuple(host for host in self.hosts if host.state in ("running", "pinned"))

    @cached_property
    def starting(self) -> tuple[HostView, ...]:
        return tuple(host for host in self.hosts if host.state == "starting")

    @cached_property
    def host_of(self) -> Mapping[str, str]:
        """Operator name -> host name."""
        return {op.name: host.name for host in self.hosts for op in host.operators}

    @cached_property
    def operators(self) -> Mapping[str, OperatorView]:
        return {op.name: op for host in self.hosts for op in host.operators}

    def host(self, name: str) -> HostView:
        return self._by_name[name]

    def query(self, name: str) -> QueryView:
        return self._queries_by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, HostView]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def _queries_by_name(self) -> Mapping[str, QueryView]:
        return {query.name: query for query in self.queries}
