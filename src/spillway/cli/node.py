"""`spillway node`: one node of a cluster, which is given its queries while it runs."""

import signal
import threading
from types import FrameType
from typing import Annotated

import typer

from spillway.cli.cluster import File, Keys, Listen, place_in, say
from spillway.watch.serving import opened_door, served


def node(
    file: File,
    name: Annotated[str, typer.Option(help="the node's name, its own in the cluster")],
    listen: Listen = None,
    keys: Keys = None,
) -> None:
    """Run one node of a cluster: a Spark application that is given its queries."""
    from spillway.hosts.cluster.node_process import run_node

    place, stop = place_in(file), threading.Event()
    door = opened_door(None, listen, keys)
    title = f"{place.name}, {name}"

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    seen = None if door is None else lambda application: served(application, title, door)
    run_node(place, name, say, stop, seen)
