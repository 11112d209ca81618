"""The networks of the papers, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spillway.errors import require, unknown_name
from spillway_lab.engine.network import (
    Network,
    Operator,
    RangeWindow,
    Stream,
    chain,
    load_coefficient,
)
from spillway_lab.engine.settings import DelayOf, Engine

CTRL_CAPACITY_PER_S = 190.0
CTRL_HEADROOM = 0.97
CTRL_SHED_COST_S = 20e-6  # not in the paper: small against the 5.1 ms of a tuple
THESIS_CAPACITY_PER_S = 210.0  # 350 tuples/s with 40 % loss (thesis table 2)
THESIS_HEADROOM = 0.99
THESIS_SHED_COST_S = 0.4e-3  # fig. 20: control is lost at some 2,000 tuples/s
LIGHT_CAPACITY_PER_S = 35_000.0  # thesis fig. 13
LIGHT_ACTIVATION_S = (120e-6 - 1.0 / LIGHT_CAPACITY_PER_S) / 10 / (1.0 - 1.0 / 50.0)
LIGHT_COST_S = 120e-6 / 10 - LIGHT_ACTIVATION_S
BATCH_PRICE = LIGHT_ACTIVATION_S / LIGHT_COST_S  # an activation, in tuples
LONG_RATE_PER_S = 200.0
LONG_SELECTIVITY = 0.5
DISSP_SUSTAINED_QUERIES = 95
DISSP_RATE_PER_S = 1000.0
DISSP_SHED_COST_S = 5e-6


def ctrl_network() -> Network:
    """Fourteen operators in a row, two of them filters (ctrl paper 4.2 gives only the number).

    The load coefficient is H / 190 per second: 5.1 ms, so that exactly 190 tuples/s can be
    processed at H = 0.97. (The paper's 5.26 ms is 1 / 190: that assumes H = 1.)
    """
    passing = [1.0] * 14
    passing[4] = passing[9] = 0.8
    return Network(operators=_scaled_chain(passing, CTRL_HEADROOM / CTRL_CAPACITY_PER_S))


def qn_flat() -> Network:
    """A source, eight selects and projects, an output (thesis 4.3.1)."""
    passing = [1.0, 0.9, 1.0, 0.9, 1.0, 0.9, 1.0, 0.9, 1.0, 1.0]
    return Network(operators=_scaled_chain(passing, THESIS_HEADROOM / THESIS_CAPACITY_PER_S))


def _scaled_chain(passing: list[float], coefficient_s: float) -> tuple[Operator, ...]:
    """Operators of equal cost whose load coefficient is the given one."""
    reached, total = 1.0, 0.0
    for selectivity in passing:
        total += reached
        reached *= selectivity
    return chain([coefficient_s / total] * len(passing), passing)


def qn_light() -> Network:
    """Ten operators without added cost: 120 us alone, 35,000 tuples/s in full batches.

    With the engine's price per activation that is what thesis fig. 13 shows: nine parts of ten of
    a lone tuple's 12 us per operator are the activation.
    """
    return Network(operators=chain([LIGHT_COST_S] * 10))


def qn_complex(groups: int = 60, favoured: float = 1.0) -> Network:
    """Groups of four queries with shared operators; 60 groups are 1,140 operators (thesis 4.3.1).

    A group has 19 operators: a source, a select and a project that all four queries share, then
    for each query a select, a project, a select and an output. Every group reads the stream, so
    one tuple in gives up to 4 x 60 out. `favoured` is the weight of the first half of the groups
    (under weighted round robin).
    """
    require(groups >= 1, "number of groups", groups, "at least 1")
    operators: list[Operator] = []
    for group in range(groups):
        weight = favoured if 2 * group < groups else 1.0
        shared = chain([1.0] * 3, [1.0, 0.8, 1.0], prefix=f"g{group}.", weight=weight)
        operators += shared
        for query in range(4):
            operators += chain(
                [1.0] * 4,
                [0.7, 1.0, 0.7, 1.0],
                stream=shared[-1].name,
                prefix=f"g{group}.q{query}.",
                weight=weight,
            )
    at_full_batches = THESIS_HEADROOM / THESIS_CAPACITY_PER_S
    return _with_load(operators, at_full_batches / (1.0 + BATCH_PRICE / 50.0))


def qn_long(groups: int = 5) -> Network:
    """Long queries: six streams through five range-window joins (thesis 5.3.1).

    In every group two queries share everything up to the group aggregate, and share the sources
    and the first join with the other two. Joins hold 10 s; at 200 tuples/s a stream they give the
    selectivity stated here, at twice the rate twice that, so load grows with a high power of it.
    (The thesis counts five sources; five joins need six.) In full batches the load
    is 0.8 at 200 tuples/s a stream.
    """
    streams = [Stream(name=name) for name in "STUVWX"]
    operators: list[Operator] = []
    for group in range(groups):
        prefix = f"g{group}."
        for stream in streams:
            name = f"{prefix}source-{stream.name}"
            operators.append(Operator(name=name, cost_s=1.0, inputs=(stream.name,)))
        sources = [operator.name for operator in operators[-6:]]
        first = _join(f"{prefix}join-1", (sources[0], sources[1]), 2 * LONG_RATE_PER_S)
        operators.append(first)
        for branch, queries in (("a", 2), ("b", 1), ("c", 1)):
            operators += _long_branch(f"{prefix}{branch}.", first.name, sources[2:], queries)
    at_full_batches = 0.8 / LONG_RATE_PER_S
    return _with_load(operators, at_full_batches / (1.0 + BATCH_PRICE / 50.0), tuple(streams))


def _long_branch(prefix: str, first_join: str, sources: list[str], queries: int) -> list[Operator]:
    """Four joins, the relation-to-stream step, row window and aggregate; then one end per query."""
    found: list[Operator] = []
    below, rate_per_s = first_join, 2 * LONG_RATE_PER_S * LONG_SELECTIVITY
    for i, source in enumerate(sources):
        rate_per_s += LONG_RATE_PER_S
        found.append(_join(f"{prefix}join-{i + 2}", (below, source), rate_per_s))
        below, rate_per_s = found[-1].name, rate_per_s * LONG_SELECTIVITY
    found += chain([1.0, 1.0], stream=below, prefix=f"{prefix}istream-rows-")
    shared = found[-1].name
    for query in range(queries):
        found += chain([1.0] * 3, [1.0, 0.5, 1.0], stream=shared, prefix=f"{prefix}q{query}.")
    return found


def _join(name: str, inputs: tuple[str, ...], rate_per_s: float) -> Operator:
    window = RangeWindow(seconds=10.0, tuples=10.0 * rate_per_s)
    return Operator(
        name=name, cost_s=2.0, inputs=inputs, selectivity=LONG_SELECTIVITY, window=window
    )


def _with_load(
    operators: list[Operator], load_s: float, streams: tuple[Stream, ...] = (Stream(),)
) -> Network:
    """The network with all costs scaled so that the load coefficients of its streams sum up."""
    network = Network(operators=tuple(operators), streams=streams)
    factor = load_s / sum(load_coefficient(network, stream.name) for stream in streams)
    scaled = (replace(operator, cost_s=operator.cost_s * factor) for operator in operators)
    return Network(operators=tuple(scaled), streams=streams)


def dissp_queries(queries: int = 100, bundle: int = 20) -> Network:
    """Users who all ask for the average over ten machines (dissp paper section 4).

    Every query takes the tuples of all ten sources, ten at a time, and puts out one result. The
    machine sustains 95 queries at the mean rate of 1,000 tuples/s: the paper's engine copes with
    80 and not with 100. The queries are all the same, so one operator stands for a bundle of them
    and costs as much: that changes nothing but the number of operators to simulate.
    """
    require(queries >= 1, "number of queries", queries, "at least 1")
    require(bundle >= 1, "queries per operator", bundle, "at least 1")
    query_s = 1.0 / (DISSP_SUSTAINED_QUERIES * DISSP_RATE_PER_S) / 1.1
    operators: list[Operator] = []
    for first in range(0, queries, bundle):
        cost_s = query_s * min(bundle, queries - first)
        average = Operator(name=f"q{first}.avg", cost_s=cost_s, rows=10)
        result = Operator(name=f"q{first}.result", cost_s=cost_s, inputs=(average.name,))
        operators += (average, result)
    return Network(operators=tuple(operators))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A network with the engine and the definition of delay that its paper used."""

    network: Network
    engine: Engine
    delay: DelayOf
    rate_per_s: float  # that it sustains, of one of its streams


_THESIS = Engine(headroom=THESIS_HEADROOM, shed_cost_s=THESIS_SHED_COST_S)

SETTINGS: Mapping[str, Callable[[], Setting]] = {
    "ctrl": lambda: Setting(
        network=ctrl_network(),
        engine=Engine(headroom=CTRL_HEADROOM, shed_cost_s=CTRL_SHED_COST_S),
        delay="every-tuple",
        rate_per_s=CTRL_CAPACITY_PER_S,
    ),
    "dissp": lambda: Setting(
        network=dissp_queries(),
        engine=Engine(shed_cost_s=DISSP_SHED_COST_S, queue_tuples=100),
        delay="oldest-input",
        rate_per_s=DISSP_RATE_PER_S,
    ),
    "qn-flat": lambda: Setting(
        network=qn_flat(), engine=_THESIS, delay="output", rate_per_s=THESIS_CAPACITY_PER_S
    ),
    "qn-light": lambda: Setting(
        network=qn_light(),
        engine=Engine(activation_s=LIGHT_ACTIVATION_S),
        delay="output",
        rate_per_s=LIGHT_CAPACITY_PER_S,
    ),
    "qn-complex": lambda: _thesis_batched(qn_complex(), THESIS_CAPACITY_PER_S),
    # Long queues: with short ones the joins block the first streams only, and the results, which
    # are mostly of the last ones, look as if nothing was late.
    "qn-long": lambda: _thesis_batched(qn_long(), LONG_RATE_PER_S, queue_tuples=2000),
}


def _thesis_batched(network: Network, rate_per_s: float, queue_tuples: int = 500) -> Setting:
    """Real operators: an activation costs several times what a tuple costs (thesis fig. 13)."""
    activation_s = BATCH_PRICE * network.operators[0].cost_s
    engine = replace(_THESIS, activation_s=activation_s, queue_tuples=queue_tuples)
    return Setting(network=network, engine=engine, delay="output", rate_per_s=rate_per_s)


def make_setting(name: str) -> Setting:
    if name not in SETTINGS:
        raise unknown_name("network", name, SETTINGS)
    return SETTINGS[name]()
