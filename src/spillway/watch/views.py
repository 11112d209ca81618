"""What can be seen of a running flow at one moment: plain frozen values.

Whoever serves them (the page, Prometheus, the command line) sees nothing else; whoever makes them
may be a driver, a recorded journal or something that watches many drivers.
"""

from dataclasses import dataclass
from typing import Literal

# Of a class, the gravest last. `missed`: late, and shedding cannot help.
Health = Literal["starting", "quiet", "good", "shedding", "catching up", "late", "missed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Flows:
    """Tuples, since the query's first start. `lost` is part of shed, the other two of admitted."""

    offered: int = 0
    admitted: int = 0
    shed: int = 0
    waiting: int = 0
    lost: int = 0
    malformed: int = 0
    vanished: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """The last seconds of a query or a class."""

    delay_s: float | None = None  # the target's statistic; None: nothing was delivered
    worst_s: float | None = None  # of single batches
    offered_per_s: float = 0.0
    kept_per_s: float = 0.0
    shed_per_s: float = 0.0
    waiting_tuples: int = 0
    waiting_s: float = 0.0  # age of the oldest


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchTime:
    """What the last batches took, each on average, by what took it."""

    batches: int = 0
    total_s: float = 0.0
    fixed_s: float = 0.0
    kept_s: float = 0.0
    scanned_s: float = 0.0
    phases_s: dict[str, float] | None = None  # of the last one, in Spark's words


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What the ledgers of a query say so far."""

    verdict: Literal["exact", "not exact", "reading", "no batch yet", "with its node"] = (
        "no batch yet"
    )
    batches: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryView:
    name: str
    class_name: str
    state: str
    reads: tuple[str, ...]
    writes: str
    pace: Pace
    batch: BatchTime
    load: float = 0.0  # seconds of batch time that a second of what is offered takes
    totals: Flows
    audit: Audit
    reason: str = ""  # of the last decision
    restarts: int = 0
    dry_run: bool = False
    budget: str | None = None
    is_template: bool = False
    node: str | None = None  # of a cluster: where it runs


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassView:
    name: str
    health: Health
    why: str
    priority: int
    target: str
    target_s: float
    statistic: str
    manager: str
    lend: float
    min_keep: float
    shedding: str
    quota: float  # share of the machine now
    original: float  # by priority
    said: str = ""  # by the class scheduler
    slowed_s: float = 0.0  # between the starts of a query's batches
    pace: Pace
    queries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamView:
    name: str
    source: str
    written_by: str | None = None  # the query that derives it


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """What was set, beside what the flow file says."""

    key: str
    value: str
    file_value: str
    by: str
    time_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """An event, in words."""

    time_s: float
    kind: str
    text: str
    about: str = ""  # a class or a query


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSeen:
    """One node of a cluster, as it reports itself."""

    name: str
    state: str
    machine: str = ""
    load: float = 0.0  # of what its slots can do, by what its queries want
    slots: float = 1.0  # batches side by side
    queries: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()  # queries that it gave up, and why
    heard_s: float | None = None  # how long ago
    watch: str | None = None  # address of its own page


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveSeen:
    """A query on its way from one node to another, or to another version of itself."""

    query: str
    origin: str
    destination: str
    stage: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSeen:
    """What a coordinator's page shows beside the classes and queries."""

    leader: str | None
    nodes: tuple[NodeSeen, ...]
    moves: tuple[MoveSeen, ...]
    away: str | None = None  # the control log does not answer: all of this is from before


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    flow: str
    time_s: float
    started_s: float | None
    state: Literal["starting", "running", "stopped"]
    ready: bool  # every query has finished a batch
    control_looked_s: float | None  # when the control loop last looked at the classes
    cores: int
    policy: str
    streams: tuple[StreamView, ...]
    classes: tuple[ClassView, ...]  # highest priority first
    queries: tuple[QueryView, ...]
    cause: str | None = None  # the query with the largest load, where something is shed or late
    overrides: tuple[Override, ...] = ()
    said: tuple[Said, ...] = ()  # newest first
    cluster: ClusterSeen | None = None  # None: one driver
