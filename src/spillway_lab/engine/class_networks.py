"""QN-A and QN-B: the thesis's networks of three classes (section 6.2.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spillway.errors import require
from spillway.model import Target
from spillway_lab.engine.classes import ServiceClass
from spillway_lab.engine.network import Network, Operator, RangeWindow, Stream, load_coefficient
from spillway_lab.engine.settings import Engine

CLASSES: Mapping[str, ServiceClass] = {
    "1": ServiceClass(priority=6, target=Target(delay_s=0.3)),
    "2": ServiceClass(priority=3, target=Target(delay_s=0.4)),
    "3": ServiceClass(priority=1, target=Target(delay_s=0.5)),
}
RATE_PER_S = 950.0  # of every stream
AGGREGATES, JOINS, SELECTS = 5, 2, 4  # queries of a class; a join reads two streams
STREAMS = AGGREGATES + 2 * JOINS + SELECTS
# Of a class at RATE_PER_S in full batches: in all slightly more than the machine.
CLASS_LOAD = 0.335
BATCH_TUPLES = 50
BATCH_PRICE = 1.5  # an activation, in tuples: less than QN-light's, whose operators do nothing
JOIN_WINDOW_S = 1.0
HIGH, LOW = "1", "3"  # the classes that can share a segment


@dataclass(frozen=True, kw_only=True)
class ClassNetwork:
    network: Network
    engine: Engine


def qn_a(
    *, sharing: bool = False, copies: Mapping[str, int] | None = None, shared_selects: int = 2
) -> ClassNetwork:
    """Three classes with the same eleven queries: five aggregates, two window joins, four selects.

    A query is a source operator for each of its streams, the operator that gives it its name and
    an output. With `sharing`, source and select of two of the four select queries are computed
    once for classes 1 and 3, in class 1; class 3 has its own gate behind them. `copies` multiplies
    a class's queries: QN-B is QN-A with class 1 three times.
    """
    require(0 <= shared_selects <= SELECTS, "shared selects", shared_selects, f"0 to {SELECTS}")
    streams: list[Stream] = []
    operators: list[Operator] = []
    for name in CLASSES:
        for copy in range((copies or {}).get(name, 1)):
            for query in _queries(f"{name}.{copy}." if copy else f"{name}.", name):
                if sharing and name == LOW and query.shareable(shared_selects):
                    operators.append(query.behind(f"{HIGH}.{query.kind}"))
                else:
                    streams += query.streams
                    operators += query.operators
    return _scaled(Network(operators=tuple(operators), streams=tuple(streams)))


def qn_b(*, sharing: bool = False) -> ClassNetwork:
    return qn_a(sharing=sharing, copies={HIGH: 3})


@dataclass(frozen=True, kw_only=True)
class _Query:
    kind: str  # name without the class: select-1
    streams: tuple[Stream, ...]
    operators: tuple[Operator, ...]

    def shareable(self, selects: int) -> bool:
        return self.kind in [f"select-{i + 1}" for i in range(selects)]

    def behind(self, shared: str) -> Operator:
        """Its output alone, reading from another class's segment."""
        return replace(self.operators[-1], inputs=(shared,))


def _queries(prefix: str, class_name: str) -> list[_Query]:
    """Costs are relative: a join costs as much as two other operators."""
    aggregate = Operator(name="aggregate", cost_s=1.0, rows=10, class_name=class_name)
    window = RangeWindow(seconds=JOIN_WINDOW_S, tuples=2.0 * RATE_PER_S * JOIN_WINDOW_S)
    join = Operator(name="join", cost_s=2.0, selectivity=0.5, window=window, class_name=class_name)
    select = Operator(name="select", cost_s=1.0, selectivity=0.5, class_name=class_name)
    kinds = ((aggregate, AGGREGATES, 1), (join, JOINS, 2), (select, SELECTS, 1))
    return [
        _query(prefix, replace(body, name=f"{body.name}-{i + 1}"), inputs)
        for body, count, inputs in kinds
        for i in range(count)
    ]


def _query(prefix: str, body: Operator, inputs: int) -> _Query:
    """A source operator for each of so many streams, what gives the query its name, an output."""
    name, class_name = f"{prefix}{body.name}", body.class_name
    streams = [Stream(name=f"{name}.in-{i + 1}", class_name=class_name) for i in range(inputs)]
    sources = [
        Operator(name=f"{s.name}.source", cost_s=1.0, inputs=(s.name,), class_name=class_name)
        for s in streams
    ]
    named = replace(body, name=name, inputs=tuple(source.name for source in sources))
    output = Operator(name=f"{name}.out", cost_s=1.0, inputs=(name,), class_name=class_name)
    return _Query(kind=body.name, streams=tuple(streams), operators=(*sources, named, output))


def _scaled(network: Network) -> ClassNetwork:
    """Costs such that class 2, which is the same in all variants, has CLASS_LOAD."""
    own = [stream for stream in network.streams if stream.class_name == "2"]
    relative = RATE_PER_S * sum(load_coefficient(network, stream.name) for stream in own)
    factor = CLASS_LOAD / relative / (1.0 + BATCH_PRICE / BATCH_TUPLES)
    scaled = tuple(replace(op, cost_s=op.cost_s * factor) for op in network.operators)
    engine = Engine(batch_tuples=BATCH_TUPLES, activation_s=BATCH_PRICE * factor, queue_tuples=500)
    return ClassNetwork(network=Network(operators=scaled, streams=network.streams), engine=engine)
