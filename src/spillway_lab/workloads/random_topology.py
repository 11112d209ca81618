"""Random trees and acyclic topologies, each node with its own degree of overload."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from spillway.cluster.fit.decide import shed_nothing
from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Port, Topology, exact
from spillway.errors import require


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is random, and in which range."""

    nodes: int
    max_parents: int = 1  # 1: a tree
    max_children: int = 3
    max_inputs: int = 2  # arcs from one parent, and streams into a root
    split_chance: float = 0.3  # a second output on an input that ends here
    overload: tuple[float, float] = (0.7, 2.5)  # offered load / capacity, per node
    weights: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        require(self.nodes >= 1, "nodes", self.nodes, "1 or more")
        require(self.max_parents >= 1, "max_parents", self.max_parents, "1 or more")


@dataclass
class _Draft:
    name: str
    inputs: list[Input] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    children: int = 0


def random_topology(shape: Shape, rng: np.random.Generator) -> tuple[Topology, dict[Port, float]]:
    """A topology and the rates of its external inputs."""
    drafts = [_Draft(name=f"n{k}") for k in range(shape.nodes)]
    _add_inputs(drafts[0], int(rng.integers(1, shape.max_inputs + 1)), rng)
    for k in range(1, shape.nodes):
        _attach(drafts[k], drafts[:k], shape, rng)
    for draft in drafts:
        _add_outputs(draft, shape, rng)
    unlimited = Topology(
        tuple(Node(name=d.name, inputs=tuple(d.inputs), paths=tuple(d.paths)) for d in drafts)
    )
    rates = {port: float(rng.integers(50, 151)) for port in unlimited.external}
    busy = shed_nothing(unlimited, rates).loads
    low, high = shape.overload
    nodes = tuple(
        replace(node, capacity=exact(f"{busy[node.name] / rng.uniform(low, high):.4g}"))
        for node in unlimited.nodes
    )
    return Topology(nodes), rates


def _hundredths(rng: np.random.Generator, low: float, high: float) -> Fraction:
    return Fraction(round(100 * float(rng.uniform(low, high))), 100)


def _add_inputs(draft: _Draft, count: int, rng: np.random.Generator) -> list[Input]:
    added = [
        Input(name=f"i{len(draft.inputs) + k}", cost=_hundredths(rng, 0.0, 1.0))
        for k in range(count)
    ]
    draft.inputs += added
    return added


def _attach(draft: _Draft, earlier: list[_Draft], shape: Shape, rng: np.random.Generator) -> None:
    open_parents = [p for p in earlier if p.children < shape.max_children] or earlier[-1:]
    count = min(int(rng.integers(1, shape.max_parents + 1)), len(open_parents))
    for chosen in rng.choice(len(open_parents), size=count, replace=False):
        parent = open_parents[int(chosen)]
        parent.children += 1
        arcs = int(rng.integers(1, shape.max_inputs + 1)) if shape.max_parents == 1 else 1
        for entry in _add_inputs(draft, arcs, rng):
            source = parent.inputs[int(rng.integers(len(parent.inputs)))]
            parent.paths.append(
                Path(
                    source=source.name,
                    cost=_hundredths(rng, 0.1, 3.0),
                    selectivity=_hundredths(rng, 0.5, 1.0),
                    to=Arc(node=draft.name, input=entry.name),
                )
            )


def _add_outputs(draft: _Draft, shape: Shape, rng: np.random.Generator) -> None:
    for entry in draft.inputs:
        if any(path.source == entry.name for path in draft.paths):
            continue
        for number in range(1 + int(rng.random() < shape.split_chance)):
            weight = Fraction(int(rng.choice(shape.weights)))
            draft.paths.append(
                Path(
                    source=entry.name,
                    cost=_hundredths(rng, 0.1, 5.0),
                    selectivity=_hundredths(rng, 0.2, 1.0),
                    to=Output(query=f"{draft.name}.{entry.name}.{number}", weight=weight),
                )
            )
