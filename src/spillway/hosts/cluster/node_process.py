"""The process of a node: today's Spark application, with its queries from the control log."""

import threading
from contextlib import nullcontext
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.cluster.messages import FlowGiven
from spillway.hosts.cluster.node import Node, Say
from spillway.hosts.cluster.node_folder import NodeFolder, root_of
from spillway.hosts.cluster.opening import Place
from spillway.hosts.spark.driver.attachment import Door
from spillway.hosts.spark.driver.running import opened

AWAIT_S = 120.0  # for a first coordinator


def run_node(
    place: Place, name: str, say: Say, stop: threading.Event, door: Door | None = None
) -> None:
    """`door` serves the node's own page, and gives its address."""
    node = Node(name, place.name, place.reports(), place.assignments(), say)
    node.await_flow(AWAIT_S)
    given = node.duties.flow
    assert given is not None
    shared = Path(given.folder)
    folder = NodeFolder(root=root_of(shared, name, node.life), shared=shared)
    say(f"node '{name}' of cluster '{place.name}' starts; its files are in {folder.root}")
    master = given.master or f"local[{given.cores},4]"
    try:
        with (
            opened(flow_of(given), f"{place.name} {name}", folder.root, master, folder=folder) as (
                application,
                _,
            ),
            nullcontext("") if door is None else door(application) as node.watch,
        ):
            application.start()
            node.serve(application, folder, stop)
    except SpillwayError:
        node.give_up()
        raise
    say(f"node '{name}' has ended")


def flow_of(given: FlowGiven) -> Flow:
    """The flow without queries: they come one by one."""
    flow = Flow.model_validate({**given.flow, "cluster": {}})
    return flow.model_copy(update={"cluster": None})
