"""What runs in the papers' engine: streams, operators, and who reads from whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite

from spillway.errors import SpillwayError, require, unknown_name


@dataclass(frozen=True, kw_only=True)
class RangeWindow:
    """The window of a join: its selectivity grows with what the window holds.

    An operator's `selectivity` holds when `tuples` passed it during the last `seconds`; twice as
    many give twice the matches.
    """

    seconds: float
    tuples: float

    def __post_init__(self) -> None:
        require(self.seconds > 0.0, "seconds of a range window", self.seconds, "above zero")
        require(self.tuples > 0.0, "tuples of a range window", self.tuples, "above zero")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where tuples come from; the gate of its class stands in front of it."""

    name: str = "input"
    class_name: str = "default"


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator: everything it does is a cost and a selectivity.

    `rows` > 1 makes it a row window: that many tuples go in, one result comes out. An operator
    that nobody reads from is an output. `weight` scales its turn under weighted round robin.
    """

    name: str
    cost_s: float  # pipeline time per tuple, without the price of an activation
    inputs: tuple[str, ...] = ("input",)
    selectivity: float = 1.0
    rows: int = 1
    window: RangeWindow | None = None
    class_name: str = "default"
    weight: float = 1.0

    def __post_init__(self) -> None:
        what = f"of operator '{self.name}'"
        require(
            isfinite(self.cost_s) and self.cost_s >= 0.0,
            f"cost {what}",
            self.cost_s,
            "a number of seconds from zero up",
        )
        require(
            isfinite(self.selectivity) and self.selectivity >= 0.0,
            f"selectivity {what}",
            self.selectivity,
            "a number from zero up",
        )
        require(self.rows >= 1, f"rows {what}", self.rows, "at least 1")
        require(self.weight > 0.0, f"weight {what}", self.weight, "above zero")
        distinct = len(set(self.inputs)) == len(self.inputs) > 0
        require(distinct, f"inputs {what}", self.inputs, "at least one name, each once")
        require(
            self.rows == 1 or (self.selectivity == 1.0 and self.window is None),
            f"rows {what}",
            self.rows,
            "1 for a filter or join (put the row window into an operator of its own)",
        )

    @property
    def results_per_tuple(self) -> float:
        return self.selectivity / self.rows


@dataclass(frozen=True, kw_only=True)
class Network:
    """Operators in an order in which everyone comes after its inputs: no cycles by construction."""

    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...] = (Stream(),)

    def __post_init__(self) -> None:
        require(len(self.operators) > 0, "number of operators", 0, "at least 1")
        known = {stream.name for stream in self.streams}
        if len(known) < len(self.streams):
            raise SpillwayError("two streams have the same name: names must differ")
        for operator in self.operators:
            for name in operator.inputs:
                if name not in known:
                    raise unknown_name(f"input of operator '{operator.name}'", name, known)
            if operator.name in known:
                raise SpillwayError(f"'{operator.name}' is used twice: names must differ")
            known.add(operator.name)
        for stream in self.streams:
            if not self.readers(stream.name):
                raise SpillwayError(f"nobody reads stream '{stream.name}': remove it")

    @cached_property
    def index(self) -> dict[str, int]:
        return {operator.name: i for i, operator in enumerate(self.operators)}

    @cached_property
    def _readers(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for i, operator in enumerate(self.operators):
            for name in operator.inputs:
                found.setdefault(name, []).append(i)
        return {name: tuple(readers) for name, readers in found.items()}

    def readers(self, name: str) -> tuple[int, ...]:
        """Indices of the operators that read from a stream or an operator."""
        return self._readers.get(name, ())

    @property
    def class_names(self) -> tuple[str, ...]:
        names = [stream.class_name for stream in self.streams]
        return tuple(dict.fromkeys(names + [operator.class_name for operator in self.operators]))


def load_coefficients(
    network: Network,
    cost_s: Sequence[float] | None = None,
    results_per_tuple: Sequence[float] | None = None,
) -> list[float]:
    """Pipeline time that one tuple at each operator's input causes there and downstream.

    Thesis eq. 3.2 as a recursion: coefficient = cost + selectivity x (sum over the readers), so a
    shared operator counts once and each of its branches in full. Only readers of the operator's
    own class count: what another class does with the tuple is that class's load. Costs and
    selectivities may be the measured ones; without them the network's own are taken.
    """
    operators = network.operators
    costs = [op.cost_s for op in operators] if cost_s is None else cost_s
    results = (
        [op.results_per_tuple for op in operators]
        if results_per_tuple is None
        else (results_per_tuple)
    )
    found = [0.0] * len(operators)
    for i in range(len(operators) - 1, -1, -1):
        own = operators[i].class_name
        below = 0.0
        for reader in network.readers(operators[i].name):
            if operators[reader].class_name == own:
                below += found[reader]
        found[i] = costs[i] + results[i] * below
    return found


def load_coefficient(network: Network, name: str) -> float:
    """The load coefficient of one operator, or of a stream (the sum over its readers)."""
    coefficients = load_coefficients(network)
    if name in network.index:
        return coefficients[network.index[name]]
    readers = network.readers(name)
    if not readers:
        known = [*network.index, *(stream.name for stream in network.streams)]
        raise unknown_name("operator or stream", name, known)
    return sum(coefficients[reader] for reader in readers)


def chain(
    costs_s: Sequence[float],
    selectivities: Sequence[float] | None = None,
    *,
    stream: str = "input",
    prefix: str = "",
    class_name: str = "default",
    weight: float = 1.0,
) -> tuple[Operator, ...]:
    """Operators one after the other, the first of which reads `stream`."""
    passing = selectivities or [1.0] * len(costs_s)
    if len(passing) != len(costs_s):
        raise SpillwayError(
            f"a chain has {len(costs_s)} costs and {len(passing)} selectivities: give one each"
        )
    names = [stream, *(f"{prefix}{i + 1}" for i in range(len(costs_s)))]
    return tuple(
        Operator(
            name=name,
            cost_s=cost_s,
            inputs=(source,),
            selectivity=selectivity,
            class_name=class_name,
            weight=weight,
        )
        for (source, name), cost_s, selectivity in zip(
            pairwise(names), costs_s, passing, strict=True
        )
    )
