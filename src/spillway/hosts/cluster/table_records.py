"""A node's feasible input table as a record of the control log, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillway.cluster.fit.scenarios import ScenarioTable
from spillway.cluster.fit.table import FeasibleInputTable, Floats
from spillway.errors import SpillwayError

TABLE = "table/"
DIGITS = 5  # of what is written: far finer than what is measured
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableGiven:
    """What a node looks up. Inputs are its queries."""

    node: str
    ttl_s: float  # from the last sign of a leader
    inputs: tuple[str, ...]
    rates: Rows  # inputs x rows
    flows: Rows  # paths x rows
    scores: tuple[float, ...]
    sources: tuple[int, ...]
    limits: Rows
    fed: tuple[str, ...] = ()  # inputs that other nodes send, batch by batch
    offered: Rows | None = None  # inputs x rows, where nodes share one behind them
    values: tuple[float, ...] | None = None  # of the paper's tables
    error: float = 0.0


Table = ScenarioTable | FeasibleInputTable


def given_of(table: Table, ttl_s: float, fed: tuple[str, ...] = ()) -> TableGiven:
    given = TableGiven(
        node=table.node,
        ttl_s=ttl_s,
        inputs=table.inputs,
        rates=_rows(table.rates),
        flows=_rows(table.flows),
        scores=_row(table.scores),
        sources=tuple(int(source) for source in table.sources),
        limits=_rows(table.limits),
        fed=fed,
    )
    if isinstance(table, FeasibleInputTable):
        return replace(given, values=_row(table.values), error=float(table.error))
    offered = table.offered
    return given if offered is None else replace(given, offered=_rows(offered))


def table_of(given: TableGiven) -> Table:
    """Raises where the parts do not belong together."""
    inputs, rows = len(given.inputs), len(given.scores)
    rates, flows = _array(given.rates, rows), _array(given.flows, rows)
    limits = _array(given.limits, inputs)
    if len(rates) != inputs or len(flows) != len(given.sources):
        raise SpillwayError(
            f"the table of node '{given.node}' has {len(rates)} rates for {inputs} inputs and"
            f" {len(flows)} flows for {len(given.sources)} paths: it is not used"
        )
    scores = np.array(given.scores)
    if given.values is None:
        return ScenarioTable(
            node=given.node,
            inputs=given.inputs,
            rates=rates,
            flows=flows,
            scores=scores,
            sources=given.sources,
            limits=limits,
            offered=None if given.offered is None else _array(given.offered, rows),
        )
    return FeasibleInputTable(
        node=given.node,
        inputs=given.inputs,
        rates=rates,
        flows=flows,
        scores=scores,
        sources=given.sources,
        limits=limits,
        values=np.array(given.values),
        error=given.error,
    )


def keep_of(table: Table, rates: Mapping[str, float]) -> dict[str, float]:
    """What each query of the node keeps of what it is offered, at most: the share of its input,
    and of that what the path that takes most of it takes."""
    plan = table.look_up([rates.get(name, 0.0) for name in table.inputs])
    taken = [0.0] * len(table.inputs)
    for source, keep in zip(table.sources, plan.path_keep, strict=True):
        taken[source] = max(taken[source], keep)
    shares = zip(table.inputs, plan.input_keep, taken, strict=True)
    return {name: keep * path for name, keep, path in shares}


def _row(values: Floats | Sequence[float]) -> tuple[float, ...]:
    return tuple(float(f"{float(value):.{DIGITS}g}") for value in values)


def _rows(values: Floats) -> Rows:
    return tuple(_row(row) for row in values)


def _array(rows: Rows, width: int) -> Floats:
    try:
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)
    except ValueError as error:
        raise SpillwayError(f"a table's rows are not of one length: {error}") from None
