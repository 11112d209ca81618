"""What users ask of the leader, pure: each request changes the draft, or is refused in a line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.cluster import TABLES
from spillway.flow.flow import Flow, Query, ServiceClass
from spillway.flow.sql import streams_of
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.changing import changed_query
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.messages import (
    ANSWER,
    FLOW,
    QUERY,
    Answer,
    Assignment,
    FlowGiven,
    Request,
)
from spillway.hosts.cluster.suitable import require_suitable
from spillway.hosts.spark.driver.cuts import cut_of
from spillway.hosts.spark.driver.terms import changed_class


def answered(
    requests: Mapping[str, Request], draft: Draft, now: Standing
) -> Iterator[tuple[str, Answer]]:
    """Carry out what is new; forget answers that nobody waits for any more."""
    known = draft.answers
    for asked, request in requests.items():
        if asked not in known:
            answer = _answer(request, draft, now)
            draft.put(ANSWER + asked, Answer, answer)
            by = f"by {request.by}" if request.by else ""
            yield " ".join(filter(None, [request.kind, request.name, request.value, by])), answer
    for asked in known:
        if asked not in requests:
            draft.remove(ANSWER + asked)


def _answer(request: Request, draft: Draft, now: Standing) -> Answer:
    try:
        return Answer(done=_CARRIED_OUT[request.kind](request, draft, now))
    except SpillwayError as error:
        return Answer(error=str(error))


def _add(request: Request, draft: Draft, now: Standing) -> str:
    before, query = draft.queries.get(request.name), _query(request, _flow(draft))
    body = query.model_dump(by_alias=True)
    if before is not None and before.state != "ended":
        if before.query == body:  # of a leader that died before it answered
            return f"query '{request.name}' is there"
        raise SpillwayError(f"query '{request.name}' is there already: give this one another name")
    if request.value and not now.is_alive(request.value):
        raise unknown_name("running node", request.value, filter(now.is_alive, now.reports))
    generation = 1 if before is None else max(before.generation, before.newest) + 1
    to = request.value or None
    given = Assignment(query=body, generation=generation, newest=generation, to=to, reason="added")
    draft.put(QUERY + request.name, Assignment, given)
    return f"query '{request.name}' is added"


def _query(request: Request, flow: Mapping[str, Any]) -> Query:
    try:
        query = Query.model_validate(dict(request.query or {}))
        whole = Flow.model_validate({**flow, "queries": {request.name: request.query}})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SpillwayError(f"query '{request.name}': {place}: {problem['msg']}") from error
    if query.class_name not in whole.classes:
        raise unknown_name("class", query.class_name, whole.classes)
    streams_of(request.name, query.text, whole)
    require_suitable(whole)
    return query


def _stop(request: Request, draft: Draft, now: Standing) -> str:
    _known(request, draft)
    draft.assign(request.name, ends=True, to=None, reason="stopped by a user")
    return f"query '{request.name}' stops"


def _move(request: Request, draft: Draft, now: Standing) -> str:
    given = _known(request, draft)
    if not now.is_alive(request.value):
        raise unknown_name("running node", request.value, filter(now.is_alive, now.reports))
    if given.node == request.value:
        return f"query '{request.name}' is on {request.value} already"
    _require_still(request, given)
    reason = "moved by a user"
    draft.assign(request.name, to=request.value, reason=reason, stops_first=request.stops_first)
    way = "by stop and start" if request.stops_first else _way(request.name, given, _flow(draft))
    return f"query '{request.name}' moves from {given.node} to {request.value}: {way}"


def _way(name: str, given: Assignment, flow: Mapping[str, Any]) -> str:
    try:
        whole = Flow.model_validate({**flow, "queries": {name: given.query}})
        cut_of(name, whole.queries[name], whole)
        return "while it runs"
    except SpillwayError as error:
        return f"by stop and start, because {error}"


def _change(request: Request, draft: Draft, now: Standing) -> str:
    """Another version of it, on the node with most room."""
    given, flow = _known(request, draft), _flow(draft)
    _require_still(request, given)
    query = changed_query(request.name, given, request.query or {}, flow)
    draft.assign(request.name, changes_to=query, to=None, reason="changed by a user")
    return f"query '{request.name}' changes while it runs"


def _back(request: Request, draft: Draft, now: Standing) -> str:
    given = _known(request, draft)
    if given.before is None:
        raise SpillwayError(f"query '{request.name}' was never changed: there is no version before")
    return _change(replace(request, query=given.before), draft, now)


def _require_still(request: Request, given: Assignment) -> None:
    if given.next is not None or given.changes_to is not None:
        raise SpillwayError(
            f"query '{request.name}' moves or changes already: wait until that is done, `spillway"
            " cluster status` shows it"
        )


def _drain(request: Request, draft: Draft, now: Standing) -> str:
    if request.name not in draft.orders:
        raise unknown_name("node", request.name, draft.orders)
    if now.is_pinned(request.name):
        raise SpillwayError(
            f"'{request.name}' is an application that has attached: its queries are its own; let it"
            " detach, or stop it"
        )
    draft.order(request.name, state="stops", reason="drained by a user")
    return f"node '{request.name}' gives its queries away and stops"


def _set(request: Request, draft: Draft, now: Standing) -> str:
    if request.name == "tables":
        return _set_tables(request, draft)
    flow = _flow(draft)
    classes = {n: ServiceClass.model_validate(c) for n, c in flow["classes"].items()}
    name, changed = changed_class(request.name, request.value, classes)
    classes[name] = changed
    body = {**flow, "classes": {n: c.model_dump(by_alias=True) for n, c in classes.items()}}
    assert draft.flow is not None
    draft.put(FLOW, FlowGiven, replace(draft.flow, flow=body))
    return f"{request.name} is {request.value} now"


def _set_tables(request: Request, draft: Draft) -> str:
    if request.value not in TABLES:
        raise unknown_name("kind of tables", request.value, TABLES)
    assert draft.flow is not None
    draft.put(FLOW, FlowGiven, replace(draft.flow, tables=request.value))
    return f"tables are {request.value} now"


def _end(request: Request, draft: Draft, now: Standing) -> str:
    assert draft.flow is not None
    draft.put(FLOW, FlowGiven, replace(draft.flow, ends=True))
    return "the cluster stops"


def _known(request: Request, draft: Draft) -> Assignment:
    found = {name: given for name, given in draft.queries.items() if given.state != "ended"}
    if request.name not in found:
        raise unknown_name("query", request.name, found)
    return found[request.name]


def _flow(draft: Draft) -> Mapping[str, Any]:
    assert draft.flow is not None
    return draft.flow.flow


_CARRIED_OUT = {
    "add": _add,
    "stop": _stop,
    "move": _move,
    "change": _change,
    "back": _back,
    "drain": _drain,
    "set": _set,
    "end": _end,
}
