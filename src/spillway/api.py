"""The flow in Python: the same parts and checks as in a flow file, and `run`.

flow = Flow("market")
flow.stream("ticks", source="synthetic", options={"rate": 20000}, event_time="event_time")
flow.service_class("gold", delay="p95 2s", priority=3)
flow.query("counts", class_="gold", sql="SELECT key, value FROM ticks WHERE value > 0.9")
flow.run(duration="30s")
"""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from spillway.check.plan import FlowPlan, plan_of
from spillway.check.problems import problems_of
from spillway.check.said import problems_in
from spillway.errors import SpillwayError, require
from spillway.flow import flow as parts
from spillway.flow.scale import Scale
from spillway.flow.values import Name, Part
from spillway.model import Target, parse_duration_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spillway.hosts.cluster.opening import Place
    from spillway.hosts.spark.driver.application import Application
    from spillway.hosts.spark.driver.attachment import Attachment, Door
    from spillway.hosts.spark.driver.drop_in import DropInScaling, FollowedCores, Tell
    from spillway.hosts.spark.driver.gate_progress import GateProgress

PartType = TypeVar("PartType", bound=Part)
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")  # in the name of an application


class _Attached(Part):
    classes: dict[Name, parts.ServiceClass]


def progress(query: Any) -> "tuple[GateProgress, ...]":
    """What the gates of a query said in its last batch: one entry for each of its streams.

    Takes a StreamingQuery, or what a StreamingQueryListener is given: an event, its progress, or
    the progress as a dict or JSON. A query without our gates, or before its first batch, has none.
    """
    from spillway.hosts.spark.driver.gate_progress import gates_of

    return gates_of(query)


def attach(
    spark: Any,
    classes: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    cluster: Path | str | None = None,
    node: str | None = None,
    folder: Path | str = ".spillway/attached",
    watch: str | None = None,
    **control: Any,
) -> "Attachment":
    """Let the queries of this application share the machine by class, until `detach()`.

    A query joins by the option `class` of its gates, under the name of their option `query`;
    queries may be started before and after. `classes` and `control` take what `classes:` and
    `control:` of a flow file take, but for `manager`, which is each gate's own option. `folder`
    holds the journal and what was set meanwhile; `watch` is HOST:PORT of a page, or `on` for a port
    of loopback.

    `cluster`, a cluster file, takes the place of `classes`: the classes are those of the cluster,
    shared with whatever else runs in it, and `spillway cluster set` changes them for all. `node` is
    what this application goes by there; its Spark name by default.
    """
    from spillway.hosts.spark.driver.attachment import Attachment
    from spillway.hosts.spark.files import Folder

    require(watch is None or isinstance(watch, str), "watch", watch, "HOST:PORT, on, off or None")
    require("\0" not in str(folder), "folder", str(folder), "a path")
    place = None if cluster is None else _place(Path(cluster), classes)
    terms = _terms(classes or {}, node) if place is None else place.flow.classes
    said = {} if place is None else place.flow.control.model_dump(exclude_unset=True)
    controls = _checked(parts.Control, "control", {**said, **control})
    root = Path(folder).absolute()
    attached = Attachment(spark, terms, controls, Folder(root=root), _door(root, watch))
    if place is not None:
        _join(attached, place, node or spark.sparkContext.appName)
    return attached


def _terms(
    classes: Mapping[str, Mapping[str, Any]], node: str | None
) -> Mapping[str, parts.ServiceClass]:
    if node is not None:
        raise SpillwayError("node is a name in a cluster: give cluster as well, or leave it out")
    terms = _checked(_Attached, "", {"classes": classes}).classes
    for name in terms:
        if "manager" in classes[name]:
            raise SpillwayError(
                f"classes.{name}.manager is the gates' to say: give their option 'manager'"
            )
    if not terms:
        raise SpillwayError("classes is empty: name at least one, with its delay")
    return terms


def _place(file: Path, classes: object) -> "Place":
    from spillway.check.flow_file import load_as_written, load_flow
    from spillway.hosts.cluster.opening import place_of

    if classes is not None:
        raise SpillwayError("classes and cluster exclude each other: a cluster has its own")
    load_flow(file)  # what is wrong with it is told here
    return place_of(file, load_as_written(file))


def _join(attached: "Attachment", place: "Place", name: str) -> None:
    from spillway.hosts.cluster.joining import Joined
    from spillway.logs.saying import say_once

    joined = Joined(_NO_NAME.sub("_", name)[:64], place, attached, say_once)
    joined.watch = attached.url or ""
    joined.start()
    attached.before_detaching.callback(joined.leave)


def _door(root: Path, watch: str | None) -> "Door | None":
    if watch is None:
        return None
    from spillway.watch.serving import opened_door, served

    door = opened_door(root, None if watch == "on" else watch, None)
    return None if door is None else lambda application: served(application, root.name, door)


def follow_cores(spark: "SparkSession") -> "FollowedCores":
    """Tell the gates of a job of your own how many cores there are, until `stop()` is called.

    For clusters whose executors come and go by other means; `scale` does it by itself.
    """
    from spillway.hosts.spark.driver.drop_in import FollowedCores

    return FollowedCores(spark)


def scale(
    spark: "SparkSession", *, delay: str, tell: "Tell | None" = None, **options: Any
) -> "DropInScaling":
    """More or fewer executors under the gates of a job of your own, until `stop()` is called.

    `delay` is what its gates were given; the options are those of `scale:` in a flow file, such
    as `max=8`. The gates follow the cores that there are. `tell` hears what happens, with figures;
    without it that is printed to standard error.
    """
    from spillway.hosts.spark.driver.drop_in import DropInScaling

    require(isinstance(delay, str), "delay", delay, "a target, such as 'p99 2s'")
    given = _checked(Scale, "scale", options)
    return DropInScaling(spark, given, Target.parse(delay), tell or _to_stderr)


def _to_stderr(event: str, values: Mapping[str, Any]) -> None:
    said = ", ".join(f"{name} {value}" for name, value in values.items())
    print(f"spillway: {event}: {said}", file=sys.stderr)


class Flow:
    """Streams, classes and queries, one call each; every call checks what it is given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._streams: dict[str, parts.Stream] = {}
        self._classes: dict[str, parts.ServiceClass] = {}
        self._queries: dict[str, parts.Query] = {}
        self._settings: dict[str, Any] = {}

    def stream(self, name: str, **options: Any) -> None:
        """A stream; the options are those of `streams:` in a flow file."""
        self._streams[name] = _checked(parts.Stream, f"streams.{name}", options)

    def service_class(self, name: str, **options: Any) -> None:
        """A class; the options are those of `classes:` in a flow file."""
        self._classes[name] = _checked(parts.ServiceClass, f"classes.{name}", options)

    def query(self, name: str, *, class_: str = "default", **options: Any) -> None:
        """A query or a template; the options are those of `queries:` in a flow file, and `frame`: a
        function that makes a DataFrame of those of the streams that its arguments name."""
        frame = {"python": options.pop("frame")} if "frame" in options else {}
        given = {"class": class_, **options, **frame}
        self._queries[name] = _checked(parts.Query, f"queries.{name}", given)

    def settings(self, **options: Any) -> None:
        """`control` and `spark` as in a flow file."""
        self._settings |= options

    def model(self) -> parts.Flow:
        """The whole flow, checked."""
        given = {
            "streams": self._streams,
            "classes": self._classes,
            "queries": self._queries,
            **self._settings,
        }
        flow = _checked(parts.Flow, self.name, given)
        if found := [problem.text for problem in problems_of(flow)]:
            raise SpillwayError(*dict.fromkeys(found))
        return flow

    def plan(self) -> FlowPlan:
        """What would run, as `spillway check` prints it."""
        return plan_of(self.model())

    def run(self, duration: str | None = None, folder: Path | str | None = None) -> "Application":
        """Run on Spark until the time is over or Ctrl-C; what was measured is in the result."""
        from spillway.hosts.spark.driver.running import begin, opened, supervise

        seconds = None if duration is None else parse_duration_s(duration, "duration")
        root = Path(folder) if folder is not None else Path(".spillway") / self.name
        flow = self.model()
        with opened(flow, self.name, root) as (application, output), suppress(KeyboardInterrupt):
            begin(application)
            supervise(application, output, seconds)
        return application


def _checked(part: type[PartType], where: str, given: dict[str, Any]) -> PartType:
    try:
        return part.model_validate(given)
    except ValidationError as error:
        raise SpillwayError(*(text for _, text in problems_in(given, error, where))) from None
