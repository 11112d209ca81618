"""Bandwidth as one more cost: a link is a node that only forwards.

A link of `bytes_per_s` spends size / bytes_per_s seconds on a tuple of that size and has one second
per second, so tables, look-ups and the optimum treat it like any node; its drops belong to the
sender. The paper names this plan as future work (section 4, "Addressing Bandwidth Bottlenecks").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from spillway.cluster.fit.topology import Arc, Input, Node, Path, Topology
from spillway.errors import SpillwayError, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """What a node sends to these children shares this bandwidth (several: one network card)."""

    sender: str
    receivers: tuple[str, ...]
    bytes_per_s: Fraction
    bytes_per_tuple: Fraction

    @property
    def name(self) -> str:
        return f"{self.sender}=>{'+'.join(self.receivers)}"


def with_links(topology: Topology, links: Sequence[Link]) -> Topology:
    """The topology with every link in its place between sender and receivers."""
    nodes = dict(topology.by_name)
    for link in links:
        if link.sender not in nodes:
            raise SpillwayError(f"link sender is '{link.sender}': there is no such node")
        require(link.bytes_per_s > 0, f"bandwidth of {link.name}", link.bytes_per_s, "above zero")
        sender = nodes[link.sender]
        over = [p.to for p in sender.paths if isinstance(p.to, Arc) and p.to.node in link.receivers]
        if not over:
            raise SpillwayError(f"link {link.name} carries nothing: the sender has no such child")
        nodes[sender.name] = replace(
            sender, paths=tuple(_through(path, link) for path in sender.paths)
        )
        nodes[link.name] = _forwarder(link, over)
    return Topology(tuple(nodes.values()))


def _through(path: Path, link: Link) -> Path:
    if isinstance(path.to, Arc) and path.to.node in link.receivers:
        return replace(path, to=Arc(node=link.name, input=_port(path.to)))
    return path


def _forwarder(link: Link, arcs: Sequence[Arc]) -> Node:
    time = link.bytes_per_tuple / link.bytes_per_s
    return Node(
        name=link.name,
        inputs=tuple(Input(name=_port(arc), cost=time) for arc in arcs),
        paths=tuple(Path(source=_port(arc), cost=Fraction(0), to=arc) for arc in arcs),
    )


def _port(arc: Arc) -> str:
    return f"{arc.node}.{arc.input}"
