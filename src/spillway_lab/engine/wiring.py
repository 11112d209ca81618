"""From a network to what runs: queues, readers, turns, and the gates between classes."""

from collections.abc import Sequence

import numpy as np

from spillway.errors import SpillwayError
from spillway_lab.engine.departures import DepartureLog
from spillway_lab.engine.inputs import Crossing, Input
from spillway_lab.engine.network import Network
from spillway_lab.engine.operators import Node, make_node
from spillway_lab.engine.scheduling import Turn
from spillway_lab.engine.settings import Engine
from spillway_lab.engine.statistics import Ints


def copies_at_entry(network: Network, inputs: Sequence[Input], tuples: int) -> Ints:
    """Every reader of a stream gets a copy of each of its tuples."""
    copies = np.zeros(tuples, dtype=np.int64)
    for source in inputs:
        copies[source.ids] = len(network.readers(source.name))
    return copies


def make_nodes(
    network: Network, engine: Engine, log: DepartureLog, *, seed: int, oldest: bool
) -> list[Node]:
    """The operators in the order of the network, each with its readers."""
    class_index = {name: i for i, name in enumerate(network.class_names)}
    nodes = [
        make_node(operator, i, log, seed, oldest) for i, operator in enumerate(network.operators)
    ]
    for node in nodes:
        node.readers = [nodes[r] for r in network.readers(node.operator.name)]
        node.capacity, node.activation_s = engine.queue_tuples, engine.activation_s
        node.exit_code = 2 * class_index[node.operator.class_name]
    return nodes


def in_bit_order(nodes: Sequence[Node], turns: Sequence[Turn]) -> list[Node]:
    """The nodes as a scheduler numbers them; each is told its bit and its turn."""
    ordered = []
    for bit, (index, turn) in enumerate(turns):
        node = nodes[index]
        node.bit, node.mask, node.turn_tuples = bit, 1 << bit, turn
        ordered.append(node)
    return ordered


def add_crossings(nodes: Sequence[Node], first_partition: int) -> list[Crossing]:
    """A gate wherever an operator has readers of another class."""
    found: list[Crossing] = []
    for node in nodes:
        for name in dict.fromkeys(reader.operator.class_name for reader in node.readers):
            if name == node.operator.class_name:
                continue
            crossing = Crossing(node.operator.name, name, first_partition + len(found))
            readers = [r for r in node.readers if r.operator.class_name == name]
            crossing.queues = [reader.queue for reader in readers]
            crossing.readers_mask = sum(reader.mask for reader in readers)
            node.crossings.append(crossing)
            found.append(crossing)
    return found


def connect_inputs(network: Network, nodes: Sequence[Node], inputs: Sequence[Input]) -> None:
    for source in inputs:
        readers = [nodes[r] for r in network.readers(source.name)]
        source.queues = [node.queue for node in readers]
        source.readers_mask = sum(node.mask for node in readers)
        for node in readers:
            if node.source is not None:
                raise SpillwayError(
                    f"operator '{node.operator.name}' reads two streams:"
                    " put a source operator behind each of them"
                )
            node.source = source
