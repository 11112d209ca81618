"""Estimates and error budgets of a flow's queries: what is checked, and what the gates get."""

from spillway.errors import SpillwayError
from spillway.gate.shedders.asked import asked_selection
from spillway.queries.estimates import counts_distinct, estimated
from spillway.queries.estimates_budget import Budget, needed_keep_fraction, parse_error
from spillway.queries.flow import Flow, Query, Stream
from spillway.queries.sql import streams_of

_NO_STRETCH_UNREAD = 0.001  # a min_keep above 0: every tuple has a chance


def check_answers(flow: Flow) -> None:
    """Raise for shedders without their options and for estimates that would not be sound."""
    for name, stream in flow.streams.items():
        try:
            asked_selection(shedder_options(stream), stream.event_time)
        except SpillwayError as error:
            raise SpillwayError(f"streams.{name}: {error}") from error
    for name, query in flow.queries.items():
        if query.estimate:
            for stream_name in streams_of(name, query.text, flow):
                if flow.streams[stream_name].from_sql is not None:
                    raise SpillwayError(
                        f"queries.{name}.estimate cannot be sound over the derived stream"
                        f" '{stream_name}': its rows do not carry their weights; write its SQL"
                        " into the query"
                    )
            answer_sql(name, query, flow)
        budget_of(query)


def answer_sql(name: str, query: Query, flow: Flow) -> str:
    """The query's SQL, with estimates where it asks for them."""
    if not query.estimate:
        return query.text
    if query.mode != "append" and counts_distinct(name, query.text):
        raise SpillwayError(
            f"queries.{name}.mode is '{query.mode}': an estimated count(DISTINCT ...) aggregates"
            " twice, which Spark can in mode append only"
        )
    stream = flow.streams[streams_of(name, query.text, flow)[0]]
    return estimated(
        name,
        query.text,
        selection=asked_selection(shedder_options(stream), stream.event_time),
        policy=stream.policy,
        confidence=query.confidence,
    )


def budget_of(query: Query) -> Budget | None:
    if query.error is None:
        return None
    error = parse_error(query.error)
    return Budget(
        error=error,
        tuples=query.error_tuples,
        needed_fraction=needed_keep_fraction(error, query.error_tuples, query.confidence),
        gives=query.gives,
    )


def shedder_options(stream: Stream) -> dict[str, str]:
    """The gate's options for the stream's shedder."""
    options = {"shedder": stream.shedder, "key": stream.key, "utility": stream.utility}
    options |= {"window": stream.window, "epoch": stream.epoch}
    return {name: value for name, value in options.items() if value is not None}


def answer_options(query: Query, stream: Stream) -> dict[str, str]:
    """The gate's options that follow from shedder, estimate and error budget."""
    options, budget = shedder_options(stream), budget_of(query)
    least = max(stream.min_keep, budget.min_keep if budget else 0.0)
    if query.estimate:
        options |= {"weight": "true", "place": "true"}
        least = max(least, _NO_STRETCH_UNREAD)
    return options | {"min_keep": str(least)}
