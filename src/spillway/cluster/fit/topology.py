"""What feasible input tables are computed from: nodes, their inputs, and the paths through them.

A node has inputs. Every tuple of an input costs `Input.cost`, then the input splits into its paths
(one path is the common case). A path costs `Path.cost` per tuple that enters it, turns it into
`selectivity` tuples, and ends at a query's output or at an input of another node. Each input is fed
by one path or from outside; a union is several inputs that go the same way. Joins, whose output is
a product of rates, are outside the model, as they are in the paper.

Numbers are exact: `exact(0.1)` is one tenth, not the binary number next to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from spillway.errors import SpillwayError, require

PRIORITY_RATIO = 1000  # one tuple of a priority is worth this many of the next lower one
OUTSIDE = ""  # the parent of an input that no node feeds

Port = tuple[str, str]  # node, input


def exact(value: float | str | Fraction) -> Fraction:
    """The number as it is written: exact(0.1) == exact("1/10")."""
    return Fraction(str(value))


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """Where a query's results leave. Its score is `score_weight` x delivered tuples per second."""

    query: str
    weight: Fraction = Fraction(1)
    priority: int = 0  # higher is served first

    @property
    def score_weight(self) -> Fraction:
        return self.weight * Fraction(PRIORITY_RATIO) ** self.priority


@dataclass(frozen=True, kw_only=True, slots=True)
class Arc:
    """The stream into an input of another node."""

    node: str
    input: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    name: str
    cost: Fraction = Fraction(0)  # per tuple, before the input splits into its paths


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    source: str  # the input it starts from
    cost: Fraction  # per tuple that enters the path
    to: Output | Arc
    selectivity: Fraction = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A server: what it runs, and how much time per second it has for that (`capacity`)."""

    name: str
    inputs: tuple[Input, ...]
    paths: tuple[Path, ...]
    capacity: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        what = f"node '{self.name}'"
        names = [i.name for i in self.inputs]
        require(len(names) > 0, f"{what}: number of inputs", 0, "at least 1")
        require(len(set(names)) == len(names), f"{what}: inputs", names, "different names")
        require(self.capacity >= 0, f"{what}: capacity", self.capacity, "zero or more")
        for entry in self.inputs:
            require(entry.cost >= 0, f"{what}: cost of {entry.name}", entry.cost, "zero or more")
            own = [p for p in self.paths if p.source == entry.name]
            require(len(own) > 0, f"{what}: paths of input {entry.name}", 0, "at least 1")
        for path in self.paths:
            self._check_path(path, what)

    def _check_path(self, path: Path, what: str) -> None:
        known = {i.name: i for i in self.inputs}
        require(path.source in known, f"{what}: path source", path.source, f"one of {list(known)}")
        require(path.cost >= 0, f"{what}: path cost", path.cost, "zero or more")
        require(path.selectivity > 0, f"{what}: selectivity", path.selectivity, "above zero")
        if isinstance(path.to, Output):
            total = known[path.source].cost + path.cost
            require(total > 0, f"{what}: cost up to {path.to.query}", total, "above zero")
            require(path.to.weight > 0, f"{path.to.query}: weight", path.to.weight, "above zero")

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Input name -> its column."""
        return {entry.name: column for column, entry in enumerate(self.inputs)}

    @cached_property
    def children(self) -> tuple[str, ...]:
        """Nodes this one sends to, in the order of its paths."""
        return tuple(dict.fromkeys(p.to.node for p in self.paths if isinstance(p.to, Arc)))


@dataclass(frozen=True)
class Topology:
    """Nodes joined by arcs, without cycles."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        require(len(self.by_name) == len(self.nodes), "node names", "repeated", "different")
        feeders: set[Port] = set()
        for node in self.nodes:
            for path in node.paths:
                if isinstance(path.to, Arc):
                    self._check_arc(node, path.to, feeders)
        self.order  # noqa: B018  (raises on a cycle)

    def _check_arc(self, node: Node, arc: Arc, feeders: set[Port]) -> None:
        target = self.by_name.get(arc.node)
        port = (arc.node, arc.input)
        if target is None or arc.input not in target.position:
            raise SpillwayError(f"node '{node.name}' sends to {port}: there is no such input")
        if port in feeders:
            raise SpillwayError(
                f"input {port} is fed by two paths: give every path an input of its own"
            )
        feeders.add(port)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def feeders(self) -> Mapping[Port, tuple[Node, Path]]:
        """Fed input -> the node and path that feed it."""
        return {
            (path.to.node, path.to.input): (node, path)
            for node in self.nodes
            for path in node.paths
            if isinstance(path.to, Arc)
        }

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """Node -> who feeds it; OUTSIDE stands for external inputs."""
        return {
            node.name: tuple(dict.fromkeys(self._parent((node.name, i.name)) for i in node.inputs))
            for node in self.nodes
        }

    def _parent(self, port: Port) -> str:
        return self.feeders[port][0].name if port in self.feeders else OUTSIDE

    @cached_property
    def external(self) -> tuple[Port, ...]:
        """Inputs that are fed from outside."""
        ports = ((node.name, entry.name) for node in self.nodes for entry in node.inputs)
        return tuple(port for port in ports if port not in self.feeders)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """Parents before children."""
        graph = {n.name: [p for p in self.parents[n.name] if p != OUTSIDE] for n in self.nodes}
        try:
            return tuple(self.by_name[name] for name in TopologicalSorter(graph).static_order())
        except CycleError as error:
            raise SpillwayError(f"nodes feed each other in a cycle: {error.args[1]}") from error

    @cached_property
    def is_forest(self) -> bool:
        """Every node has one parent: what tables alone can coordinate."""
        return all(len(parents) == 1 for parents in self.parents.values())

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        paths = chain.from_iterable(node.paths for node in self.nodes)
        return tuple(path.to for path in paths if isinstance(path.to, Output))

    def check_rates(self, rates: Mapping[Port, float]) -> None:
        """Every external input has a rate, and nothing else does."""
        if set(rates) != set(self.external):
            odd = sorted(set(rates) ^ set(self.external))
            raise SpillwayError(f"rates are missing or unknown for {odd}: give one per input")
        for port, rate in rates.items():
            require(rate >= 0, f"rate of {port}", rate, "zero or more")
