"""What operators would use if nothing held them back: offered rates x true costs (DS2).

Measured CPU says nothing about demand on a saturated host. The true rate does: tuples per second
of CPU time really spent. With the offered rate of the query's source and the selectivities on the
way, demand = sum over operators of (rate that would arrive) / (true rate).
"""

from collections.abc import Mapping

from spillway.cluster.views import ClusterView, HostView, OperatorView


def demand_cores(view: ClusterView) -> dict[str, float]:
    """Operator -> cores it wants; rates spread from the sources in topological order."""
    wanted: dict[str, float] = {}
    operators = view.operators
    for query in view.queries:
        arriving = _arriving(operators, query.operators, query.offered_rate_per_s)
        for name, rate_per_s in arriving.items():
            cores = rate_per_s / operators[name].true_rate_per_s
            # A shared operator sees its stream once, whichever query asks.
            if cores > wanted.get(name, -1.0):
                wanted[name] = cores
    return wanted


def host_demand(view: ClusterView, demand: dict[str, float]) -> dict[str, float]:
    """Host -> demanded share of its CPU; above 1 it cannot keep up."""
    return {
        host.name: sum(demand.get(op.name, op.use.cpu_cores) for op in host.operators)
        / host.capacity.cpu_cores
        for host in view.running
    }


def backlog_s(host: HostView) -> float:
    """Seconds that the whole host would need for what already waits on it."""
    waiting = sum(op.queued_tuples / op.true_rate_per_s for op in host.operators)
    return waiting / host.capacity.cpu_cores


def _arriving(
    operators: Mapping[str, OperatorView], names: tuple[str, ...], source_rate_per_s: float
) -> dict[str, float]:
    """Operator -> tuples per second that would reach it. `names` run from source to sink."""
    arriving: dict[str, float] = {}
    for name in names:
        if name not in operators:
            continue  # on the move: not measured now
        feeds = [one for one in operators[name].upstream if one in arriving]
        arriving[name] = (
            sum(arriving[one] * operators[one].selectivity for one in feeds)
            if feeds
            else source_rate_per_s
        )
    return arriving
