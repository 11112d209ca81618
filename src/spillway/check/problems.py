"""What no part of a flow can see by itself: names that must exist elsewhere, options, SQL.

What is found here is what a run would refuse, told before Spark starts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from spillway.check.clients import client_problems
from spillway.check.document import Location
from spillway.check.sql_problems import Problem, sql_problems
from spillway.errors import SpillwayError, unknown_name
from spillway.estimates.flow import check_answers, gate_options
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow, Query, Stream
from spillway.flow.scale import DYNAMIC, require_scalable
from spillway.flow.sql import read_by
from spillway.gate.options import GateOptions
from spillway.hosts.cluster.opening import require_control
from spillway.hosts.spark.planner.starts import positions_named
from spillway.logs.stream_options import named_topics, require_valid
from spillway.sinks import catalog as sinks
from spillway.templates.instances import template_of

_PLACE = re.compile(r"(streams|classes|queries)((?:\.[A-Za-z_]\w{0,63}|\[[0-9]{1,6}\]){1,4})")
_STEP = re.compile(r"\.(\w+)|\[([0-9]+)\]")
_SQL_LINE = re.compile(r" at line ([0-9]{1,9})")
_OPTION = re.compile(r"^option '([^']{1,100})'")


def problems_of(flow: Flow) -> Iterator[Problem]:
    """The later looks are only taken where the earlier ones found nothing."""
    first = [*_name_problems(flow), *_stream_problems(flow), *_query_problems(flow)]
    first += [*_scale_problems(flow), *_cluster_problems(flow)]
    yield from first
    if first:
        return
    whole = [*_asked(lambda: check_answers(flow)), *_asked(lambda: expanded(flow, Path()))]
    yield from whole
    if not whole:
        yield from _gate_problems(flow)
        yield from client_problems(flow)
        yield from sql_problems(flow)


def _scale_problems(flow: Flow) -> list[Problem]:
    """Where the file names a master: another one may be given when it runs."""
    if flow.scale is None or "master" not in flow.spark.model_fields_set:
        return []
    dynamic, master = str(flow.spark.config.get(DYNAMIC, "false")), flow.spark.master
    return list(_asked(lambda: require_scalable(master, dynamic), ("scale",)))


def _cluster_problems(flow: Flow) -> Iterator[Problem]:
    if flow.cluster is not None:
        control = flow.cluster.control
        yield from _asked(lambda: require_control(control), ("cluster", "control"))


def _asked(ask: Callable[[], object], place: Location = ()) -> Iterator[Problem]:
    """What is refused; its place is in its words, unless it is known."""
    try:
        ask()
    except SpillwayError as error:
        for said in error.problems:
            line = _SQL_LINE.search(said)
            yield Problem(
                place=place or place_in(said), text=said, line=int(line[1]) if line else None
            )
    except RecursionError:
        name = ".".join(map(str, place))
        yield Problem(place=place, text=f"{name} is nested too deeply: write it in several parts")


def place_in(text: str) -> Location:
    """'queries.q.instances[3].x is ...' as a place in the document."""
    found = _PLACE.match(text)
    if found is None:
        return ()
    steps = _STEP.finditer(found[2])
    return (found[1], *(step[1] or int(step[2]) for step in steps))


def _name_problems(flow: Flow) -> Iterator[Problem]:
    for name, query in flow.queries.items():
        if query.class_name not in flow.classes:
            missing = unknown_name("class", query.class_name, flow.classes)
            place = ("queries", name, "class")
            yield Problem(place=place, text=f"queries.{name}.class: {missing}")
    names = {
        f"streams.{name}.columns": list(s.columns) for name, s in flow.streams.items() if s.columns
    }
    for where, given in {"streams": list(flow.streams), **names}.items():
        known: dict[str, str] = {}
        for name in given:
            other = known.setdefault(name.lower(), name)
            if other != name:
                said = f"'{other}' and '{name}' are one name to Spark, which ignores the case"
                yield Problem(place=(*where.split("."), name), text=f"{where}: {said}")


# Gate options that a flow sets itself, and where a user says them.
_SAID_ELSEWHERE: Mapping[str, str] = {
    "delay": "classes.NAME.delay",
    "manager": "classes.NAME.manager",
    "period": "control.period",
    "policy": "streams.NAME.policy",
    "min_keep": "streams.NAME.min_keep",
    "dry_run": "queries.NAME.dry_run",
    "weight": "queries.NAME.estimate",
    "heartbeat": "streams.NAME.event_time",
    "schema": "streams.NAME.columns",
    **{name: f"streams.NAME.{name}" for name in ("shedder", "key", "utility", "window", "epoch")},
}
_RUN_SETS = ("arrival", "checkpoint", "ledger", "joint", "class", "gate", "query", "trigger")


def _stream_problems(flow: Flow) -> Iterator[Problem]:
    for name, stream in flow.streams.items():
        if stream.source is not None:
            yield from _option_problems(name, stream)
        if stream.source and stream.event_time is None and "watermark" in stream.model_fields_set:
            said = "is how late event times may be: give event_time, the column that has them"
            place = ("streams", name, "watermark")
            yield Problem(place=place, text=f"{'.'.join(place)} {said}, or leave it out")


def _option_problems(name: str, stream: Stream) -> Iterator[Problem]:
    options = f"streams.{name}.options"
    given: dict[str, str] = {}
    for option in stream.options:
        place: Location = ("streams", name, "options", option)
        asked = option.lower().partition(".")[0]
        other = given.setdefault(option.lower(), option)
        if other != option:
            said = f"the same option as {other}: leave one of them out"
            yield Problem(place=place, text=f"{options}.{option} is {said}")
        elif asked in _SAID_ELSEWHERE:
            said = f"say it as {_SAID_ELSEWHERE[asked]}"
            yield Problem(place=place, text=f"{options}.{option}: {said}")
        elif asked in _RUN_SETS:
            said = "`spillway run` sets it; leave it out"
            yield Problem(place=place, text=f"{options}.{option}: {said}")
    for problem in _asked(lambda: require_valid(stream.source or "", stream.options)):
        yield located(name, stream, problem)


def located(name: str, stream: Stream, problem: Problem) -> Problem:
    """Of a stream, at the option that it names, if the flow says that one."""
    if problem.place:
        return problem
    named = _OPTION.match(problem.text)
    place: Location = ("streams", name, "options")
    if named is not None:
        same = [option for option in stream.options if option.lower() == named[1].lower()]
        place = (*place, *same[:1])
    elif not stream.options:
        place = ("streams", name)
    return Problem(place=place, text=f"streams.{name}.options: {problem.text}")


def _query_problems(flow: Flow) -> Iterator[Problem]:
    for name, query in flow.queries.items():
        key = next(k for k in ("sql", "template", "python") if getattr(query, k) is not None)
        found = list(_asked(lambda n=name, q=query: read_by(n, q, flow)))  # type: ignore[misc]
        for problem in found:
            said = problem.text.replace(f"queries.{name}.sql", f"queries.{name}.{key}")
            yield Problem(place=("queries", name, key), text=said, line=problem.line)
        if query.template is not None and not found:
            yield from _asked(lambda n=name, q=query: template_of(n, q))  # type: ignore[misc]
        yield from _sink_problems(name, query)


def _sink_problems(name: str, query: Query) -> Iterator[Problem]:
    found = list(_asked(lambda: sinks.given_to(name, query.sink)))
    yield from found
    if not found:
        yield from _asked(lambda: sinks.require_client(query.sink), ("queries", name, "sink"))


def _gate_problems(flow: Flow) -> Iterator[Problem]:
    """Options that exclude or need each other, as the gate of each query reads them."""
    for name, query in flow.queries.items():
        for stream_name in read_by(name, query, flow):
            stream = flow.streams[stream_name]
            if stream.source is None:
                continue
            options = gate_options(flow, name, stream_name)
            options |= {"joint": name} if len(read_by(name, query, flow)) > 1 else {}

            def ask(given: Mapping[str, str] = options) -> None:
                gate = GateOptions.parse({**given, "checkpoint": "checkpoint"})
                if (topics := named_topics(given)) is not None:
                    positions_named(gate.starting_offsets, topics)

            for problem in _asked(ask):
                yield located(stream_name, stream, problem)
