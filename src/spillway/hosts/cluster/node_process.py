"""The process of a node: today's Spark application, with its queries from the control log."""

import re
import threading
from contextlib import nullcontext
from pathlib import Path

from spillway.errors import SpillwayError, shown
from spillway.hosts.cluster.node import Node, Say
from spillway.hosts.cluster.node_folder import NodeFolder, root_of
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.written import flow_of
from spillway.hosts.spark.driver.attachment import Door
from spillway.hosts.spark.driver.running import opened

AWAIT_S = 120.0  # for a first coordinator
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def run_node(
    place: Place, name: str, say: Say, stop: threading.Event, door: Door | None = None
) -> None:
    """`door` serves the node's own page, and gives its address."""
    if not _NAME.fullmatch(name):  # it is part of a path
        raise SpillwayError(
            f"--name is '{shown(name)}': it must be at most 64 letters, digits, '.', '_' and '-',"
            " and begin with a letter or a digit"
        )
    node = Node(name, place, say)
    node.await_flow(AWAIT_S)
    given = node.duties.flow
    assert given is not None
    shared = Path(given.folder)
    folder = NodeFolder(root=root_of(shared, name, node.life), shared=shared)
    say(f"node '{name}' of cluster '{place.name}' starts; its files are in {folder.root}")
    master = given.master or f"local[{given.cores},4]"
    try:
        flow, title = flow_of(given, place.file.parent), f"{place.name} {name}"
        with (
            opened(flow, title, folder.root, master, folder=folder) as (application, _),
            nullcontext("") if door is None else door(application) as node.watch,
        ):
            application.start()
            node.serve(application, folder, stop)
    except SpillwayError:
        node.give_up()
        raise
    say(f"node '{name}' has ended")
