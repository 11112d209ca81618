"""A flow from the start of its Spark session to the end of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.folder import Folder
from spillway.hosts.spark.session.pools import session_for
from spillway.hosts.spark.session.session import open_session
from spillway.sinks import catalog as sinks

_LOOK_S = 0.5


@contextmanager
def running(flow: Flow, name: str, root: Path, master: str | None = None) -> Iterator[Application]:
    """The started application; stopped, and its session closed, when the block ends."""
    sinks.require_ready(flow)
    priorities = {name: c.priority for name, c in flow.classes.items()}
    given = {key: str(value) for key, value in flow.spark.config.items()}
    wanted = master or flow.spark.master
    chosen, settings = session_for(wanted, priorities, root, len(flow.queries))
    spark = open_session(chosen, {**settings, **given}, name=f"spillway {name}")
    try:
        application = Application(flow, spark, Folder(root=root.absolute()))
        application.start()
        try:
            yield application
        finally:
            application.stop()
    finally:
        spark.stop()


def supervise(application: Application, seconds: float | None) -> None:
    """Keep the queries running for so long, or for ever."""
    ends_s = None if seconds is None else time.monotonic() + seconds
    while ends_s is None or time.monotonic() < ends_s:
        application.supervise()
        time.sleep(_LOOK_S)
