"""What the bodies of a control log's records say.

In the log of assignments, written by the leader alone: `leader`, `flow`, `query/NAME`, `node/NAME`,
`table/NODE` (`table_records`) and `answer/ID`. In the log of reports: `node/NAME`, by the node, and
`request/ID`, by a user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spillway.cluster.fit.measured import QueryCost
from spillway.cluster.views import HostView, QueryView
from spillway.handover import Positions

LEADER, FLOW = "leader", "flow"
QUERY, NODE, ANSWER, REQUEST = "query/", "node/", "answer/", "request/"

QueryState = Literal["waits", "runs", "leaves", "ended"]
Came = Literal["", "moved while it ran", "stopped and started", "taken over"]
SuccessorState = Literal["follows", "cuts", "takes"]
NodeState = Literal["starting", "running", "draining", "ended"]


def run_name(query: str, generation: int) -> str:
    """What a query's checkpoint goes by where it runs: while it moves there are two of them."""
    return query if generation == 1 else f"{query}@{generation}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leadership:
    """Who leads; the epoch of its record counts the leaders."""

    leader: str
    lease_s: float
    beat: int = 0  # a renewal is a new record
    ended: bool = False  # the cluster was stopped: stand-bys end as well
    host: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowGiven:
    """What all nodes share."""

    flow: Mapping[str, Any]  # the flow file without its queries
    folder: str  # checkpoints, where every node can reach them
    lease_s: float
    cores: int  # of a node
    master: str | None = None  # of the Spark application that a node is
    ends: bool = False  # all nodes are to stop; queries stay as they are for the next start
    tables: str = "none"  # how nodes learn what those behind them can take


@dataclass(frozen=True, kw_only=True, slots=True)
class Successor:
    """The next checkpoint of a query that moves, or changes, while it runs.

    `follows`: it reads on from where the origin stood, and nothing of it comes out. `cuts`: it has
    caught up and waits; the origin is to choose from where on results are the successor's: from a
    window, or from positions that it then reads up to, and is done. `takes`: the windows from
    `from_us` on are the successor's; the origin finishes those before, and is done.
    """

    query: Mapping[str, Any]
    generation: int
    epoch: int = 1
    state: SuccessorState = "follows"
    node: str | None = None
    life: str | None = None
    read_us: int = 0  # the newest event time that it had read when it had caught up
    read_at: Positions | None = None  # where it stood then; of a query without state
    from_us: int | None = None  # the start of its first own window, or earlier
    from_at: Positions | None = None  # where its first own rows stand


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A query: what it is, and which life of which node may run it.

    `waits`: nobody may. `runs`: the life does. `leaves`: the life is to stop it, and says so by a
    report that has read this record and does not name the query any more. `ended`: it was taken
    out; should one of its name be added again, it gets the next generation.
    """

    query: Mapping[str, Any]
    state: QueryState = "waits"
    node: str | None = None
    life: str | None = None
    to: str | None = None  # where it goes next; None: wherever there is room
    ends: bool = False  # it goes nowhere: it is taken out
    generation: int = 1  # of its checkpoint
    newest: int = 1  # generation that there has been
    epoch: int = 0  # counts how often it was given to a node
    from_us: int | None = None  # windows that start before are those of the generation before
    from_at: Positions | None = None  # rows before are
    next: Successor | None = None
    changes_to: Mapping[str, Any] | None = None  # another version of it, as soon as it can
    before: Mapping[str, Any] | None = None  # the version that it was changed from
    stops_first: bool = False  # it cannot move while it runs, or is not to
    held_back: bool = False  # at a first start: until all nodes are there
    moved_from: str | None = None
    came_by: Came = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeOrder:
    """What a node is to be."""

    state: Literal["runs", "stops"] = "runs"  # stops: once nothing is on it any more
    quotas: Mapping[str, float] = field(default_factory=dict)  # by class; empty: by priority
    life: str | None = None  # the one that the leader holds with, should two go by this name
    launched: int = 0  # times that the coordinator's launcher was asked for it
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    done: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """How far one side of a move has got, by the offsets and results of ended batches; and what
    the move cost."""

    read_us: int | None = None  # of a successor that has caught up: the newest event time
    read_at: Positions | None = None  # or, of a query without state, where it stands
    until_us: int | None = None  # of an origin: only windows that start before are its own
    until_at: Positions | None = None  # or only rows before
    finished: bool = False  # and all of them are out
    pause_s: float | None = None  # without results, when the query came here

    @property
    def has_caught_up(self) -> bool:
        return self.read_us is not None or self.read_at is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A query as people look at it; nothing is decided by it."""

    admitted_tuples: int = 0  # since its first start
    shed_tuples: int = 0
    waiting_tuples: int = 0
    waiting_s: float = 0.0  # age of the oldest
    delay_s: float | None = None  # the target's statistic, lately
    batch_s: float | None = None  # on average, lately
    fixed_s: float = 0.0  # of that, whatever it holds
    reason: str = ""  # of the last decision


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeReport:
    """A node at one moment, and its claim to its lease. Queries go by `run_name`."""

    life: str
    lease_s: float
    state: NodeState
    applied: int  # assignments were read up to there when the rest was looked at
    running: Mapping[str, int]  # query -> epoch of the assignment; also those that start or stop
    before: tuple[str, ...] = ()  # earlier lives of the same process: nothing of them runs any more
    host: HostView | None = None
    queries: tuple[QueryView, ...] = ()
    costs: tuple[QueryCost, ...] = ()  # of queries whose gates have learned them
    states: Mapping[str, str] = field(default_factory=dict)  # of queries, for people
    failed: Mapping[str, str] = field(default_factory=dict)  # queries that it gave up, and why
    reached: Mapping[str, Reached] = field(default_factory=dict)  # of queries that move, or have
    seen: Mapping[str, Seen] = field(default_factory=dict)
    watch: str = ""  # address of its own page
    machine: str = ""
    time_s: float = 0.0  # wall time, for people: nothing is decided by it

    @property
    def is_pinned(self) -> bool:
        """An application that has attached: it takes no query, and none can be taken from it."""
        return self.host is not None and self.host.state == "pinned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a user asks of the leader."""

    kind: Literal["add", "stop", "move", "change", "back", "drain", "set", "end"]
    name: str = ""  # of the query, the node or the setting
    value: str = ""  # the node to move or add to, the setting's value
    stops_first: bool = False  # of a move
    query: Mapping[str, Any] | None = None
    by: str = ""  # whose token asked, where it came through the page
