"""Estimates and error budgets of a flow's queries: what is checked, and what the gates get."""

from collections.abc import Mapping

from spillway.errors import SpillwayError
from spillway.estimates.budget import Budget, needed_keep_fraction, parse_error
from spillway.estimates.estimates import counts_distinct, estimated
from spillway.estimates.whole_windows import reaches_over, with_whole_windows
from spillway.flow.flow import Flow, Query, Stream
from spillway.flow.links import links_of
from spillway.flow.shedders import selection_of, shedder_options
from spillway.flow.sql import read_by, streams_of
from spillway.gate.shedders.shedder import WholeWindows
from spillway.logs.stream_options import stream_options
from spillway.options import by_own_names, written


def check_answers(flow: Flow) -> None:
    """Raise for shedders without their options and for estimates that would not be sound."""
    for name, stream in flow.streams.items():
        try:
            selection_of(stream)
        except SpillwayError as error:
            raise SpillwayError(f"streams.{name}: {error}") from error
    for name, query in flow.queries.items():
        if query.python is not None:
            _require_samples(name, query, flow)
            continue
        if query.estimate:
            _require_own_weights(name, query, flow)
        elif counts_distinct(name, query.text):
            raise SpillwayError(
                f"queries.{name} counts distinct values, which Spark cannot over a stream: write"
                " approx_count_distinct(x), or estimate: true over a stream with shedder key on x"
            )
        if answer_sql(name, query, flow) != query.text and query.template is not None:
            raise SpillwayError(
                f"queries.{name}.template has sliding windows over a stream that sheds whole ones:"
                " which of them are complete can be told for sql only; use tumbling windows that"
                " divide the shedder's, or another shedder"
            )
        budget_of(query)


def _require_samples(name: str, query: Query, flow: Flow) -> None:
    """Which windows are complete is told by rewriting SQL; so are estimates and their bounds."""
    for stream_name in read_by(name, query, flow):
        if _whole_windows(flow.streams[stream_name]) is not None:
            raise SpillwayError(
                f"queries.{name}.python reads stream '{stream_name}', which sheds whole windows:"
                " which of them are complete can be told for sql only; use another shedder"
            )
    if query.error is not None:
        raise SpillwayError(f"queries.{name}.error is a budget of sql: its sums are not known here")


def _require_own_weights(name: str, query: Query, flow: Flow) -> None:
    for stream_name in streams_of(name, query.text, flow):
        if flow.streams[stream_name].from_sql is not None:
            raise SpillwayError(
                f"queries.{name}.estimate cannot be sound over the derived stream '{stream_name}':"
                " its rows do not carry their weights; write its SQL into the query"
            )
        for link in links_of(flow):
            if link.stream == stream_name:
                raise SpillwayError(
                    f"queries.{name}.estimate cannot be sound over '{stream_name}', which query"
                    f" '{link.writer}' writes: what was shed before that query is in no weight of"
                    " its results; estimate in that query"
                )


def answer_sql(name: str, query: Query, flow: Flow) -> str:
    """The query's SQL, with estimates where it asks for them, and complete windows only."""
    if not query.estimate:
        return _complete_windows(name, query.text, flow)
    stream = flow.streams[streams_of(name, query.text, flow)[0]]
    selection = selection_of(stream)
    if query.mode != "append" and selection is not None and selection.whole_keys is not None:
        raise SpillwayError(
            f"queries.{name}.mode is '{query.mode}': an estimate over whole keys aggregates twice,"
            " which Spark can in mode append only"
        )
    return estimated(
        name,
        query.text,
        selection=selection,
        policy=stream.policy,
        confidence=query.confidence,
    )


def _complete_windows(name: str, text: str, flow: Flow) -> str:
    for stream_name in streams_of(name, text, flow):
        windows = _whole_windows(flow.streams[stream_name])
        if windows is not None:
            text = with_whole_windows(name, text, stream_name, windows)
    return text


def _whole_windows(stream: Stream) -> WholeWindows | None:
    selection = selection_of(stream)
    return None if selection is None else selection.whole_windows


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


def gate_options(flow: Flow, name: str, stream_name: str) -> dict[str, str]:
    """All that a flow says of the gate between a query and one of its streams."""
    query, stream = flow.queries[name], flow.streams[stream_name]
    service_class = flow.classes[query.class_name]
    law, settings = service_class.law
    options = {key: written(value) for key, value in _own(stream).items()}
    options |= {
        "source": stream.source or "",
        "delay": service_class.delay,
        "manager": law,
        "period": flow.control.period,
        "policy": stream.policy,
        "dry_run": written(query.dry_run),
        "class": query.class_name,
        "gate": f"{name}/{stream_name}",
        "query": name,
        "arrival": "true",  # derived streams keep it, and SQL may ask for it
    }
    options |= {f"manager.{key}": written(value) for key, value in settings.items()}
    options |= answer_options(query, stream)
    if service_class.max_shed is not None:
        options.setdefault("max_shed", service_class.max_shed)  # a stream's own goes before it
    if stream.event_time is not None:
        options["heartbeat"] = stream.event_time
    return options


def _own(stream: Stream) -> Mapping[str, object]:
    """A stream's options under their own names: Spark's names for them are as good."""
    if stream.source is None:
        return stream.options
    return by_own_names(stream_options(stream.source), stream.options)


def answer_options(query: Query, stream: Stream) -> dict[str, str]:
    """The gate's options that follow from shedder, estimate and error budget."""
    options, budget = shedder_options(stream), budget_of(query)
    least = max(stream.min_keep, budget.min_keep if budget else 0.0)
    if query.estimate:
        options |= {"weight": "true", "place": "true"}
    windows = _whole_windows(stream)
    if windows is not None and reaches_over(query.text, windows):
        options["kept_from"] = "true"
    return options | {"min_keep": str(least)}
