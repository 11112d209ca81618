"""The FIT paper's own networks: figure 1 (nodes A and B) and figure 3 (a split).

The paper gives figure 1's selectivities at B twice, differently: table 1 counts one output tuple
per input tuple, the spreads and look-ups of section 3 need 0.5 for the upper path.
"""

from collections.abc import Sequence
from fractions import Fraction

from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Topology, exact

TABLE_1_SELECTIVITY = exact(1)
SECTION_3_SELECTIVITY = exact("0.5")
A_COSTS = (exact(1), exact(2))
B_COSTS = (exact(3), exact(1))


def node_b(upper_selectivity: Fraction) -> Node:
    """Node B of figure 1: costs 3 and 1."""
    return Node(
        name="B",
        inputs=(Input(name="1"), Input(name="2")),
        paths=(
            Path(source="1", cost=B_COSTS[0], selectivity=upper_selectivity, to=Output(query="q1")),
            Path(source="2", cost=B_COSTS[1], to=Output(query="q2")),
        ),
    )


def figure_1(upper_selectivity: Fraction) -> Topology:
    """A (costs 1 and 2, selectivity 1) in front of B."""
    paths = tuple(
        Path(source=name, cost=cost, to=Arc(node="B", input=name))
        for name, cost in zip(("1", "2"), A_COSTS, strict=True)
    )
    a = Node(name="A", inputs=(Input(name="1"), Input(name="2")), paths=paths)
    return Topology((a, node_b(upper_selectivity)))


def figure_3() -> Node:
    """One input of cost 1 that splits into paths of cost 2 and 5."""
    return Node(
        name="split",
        inputs=(Input(name="in", cost=exact(1)),),
        paths=(
            Path(source="in", cost=exact(2), to=Output(query="top")),
            Path(source="in", cost=exact(5), to=Output(query="bottom")),
        ),
    )


def round_robin(rates: Sequence[Fraction], costs: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Tuples per second that each subquery gets through under a fair scheduler.

    Every subquery may process as many tuples as any other, or all that it is offered: the share
    x of min(rate, x) with sum(cost x min(rate, x)) = 1.
    """
    served: dict[int, Fraction] = {}
    left = Fraction(1)
    waiting = sorted(range(len(rates)), key=lambda i: rates[i])
    while waiting:
        share = left / sum(costs[i] for i in waiting)
        lowest = waiting.pop(0)
        served[lowest] = min(rates[lowest], share)
        left -= served[lowest] * costs[lowest]
    return tuple(served[i] for i in range(len(rates)))


def load(rates: Sequence[Fraction], costs: Sequence[Fraction]) -> Fraction:
    return sum((r * c for r, c in zip(rates, costs, strict=True)), Fraction(0))
