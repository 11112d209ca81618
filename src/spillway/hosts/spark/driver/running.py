"""A flow from the start of its Spark session to the end of it."""

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.scale import DYNAMIC, require_scalable
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.supervision import cause_of
from spillway.hosts.spark.driver.warm_up import warm_up
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.pools import session_for, settings_to_scale
from spillway.hosts.spark.session.session import open_session
from spillway.sinks import catalog as sinks

_LOOK_S = 0.5
SEVERAL = 2  # queries: each needs task slots of its own


@contextmanager
def opened(
    flow: Flow,
    name: str,
    root: Path,
    master: str | None = None,
    *,
    folder: Folder | None = None,
) -> Iterator[tuple[Application, SparkOutput]]:
    """An application in a session of its own, not started, and what Spark prints.

    A `folder` is that of a node: its queries come and go, and are of any number.
    """
    sinks.require_ready(flow)
    wanted = master or flow.spark.master
    given = {key: str(value) for key, value in flow.spark.config.items()}
    if flow.scale is not None:
        require_scalable(wanted, given.get(DYNAMIC, "false"))
        given = settings_to_scale(flow.scale.min, flow.scale.max) | given
    queries = len(flow.queries) if folder is None else SEVERAL
    folder = folder or Folder(root=root.absolute())
    output = SparkOutput(folder.spark_log)
    with folder.lock().while_held(), _told_in_a_line(output):
        priorities = {name: c.priority for name, c in flow.classes.items()}
        chosen, settings = session_for(wanted, priorities, root, queries)
        spark = open_session(chosen, {**settings, **given}, name=f"spillway {name}", output=output)
        try:
            application = Application(flow, spark, folder)
            try:
                yield application, output
            finally:
                application.stop()
        finally:
            spark.stop()


def begin(application: Application) -> None:
    """Warm its queries up, then start them."""
    warm_up(application)
    application.start()


def supervise(application: Application, output: SparkOutput, seconds: float | None) -> None:
    """Keep the queries running for so long, or for ever, and tell what their processes say."""
    ends_s = None if seconds is None else time.monotonic() + seconds
    while ends_s is None or time.monotonic() < ends_s:
        application.supervise()
        for line in output.news():
            print(line, file=sys.stderr)
        time.sleep(_LOOK_S)


@contextmanager
def _told_in_a_line(output: SparkOutput) -> Iterator[None]:
    """An error of Spark, such as a JVM that is gone: its traces are for the file."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        output.keep(traceback.format_exc())
        cause = cause_of(str(error)) if str(error) else type(error).__name__
        raise SpillwayError(f"Spark has failed: {cause}; its log is {output.path}") from error
