"""Which operators leave a host, and where operators go (FUGU, section II).

Both questions are bin packing. What stays on an overloaded host is the heaviest set of operators
that fits under the target utilisation (subset sum by dynamic programming, on a grid of a millionth
of a core, or of a four millionth of the room where that is coarser). Where operators go is first
fit decreasing: by CPU, heaviest first, onto any host with room for CPU, memory and network, hosts
of neighbouring operators preferred.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from spillway.cluster.views import HostView, OperatorView, Resources

GRID_PER_CORE = 1_000_000
MOST_UNITS = 4_000_000
SLACK = 1e-3  # of a grid unit: 0.6 - 0.5 is a full 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Room for operators: a host seen by the packer."""

    name: str
    free: Resources
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    assigned: Mapping[str, str]  # operator -> host
    unplaced: tuple[OperatorView, ...]
    bins: tuple[Bin, ...]  # what is left of the room


def operators_to_move(
    host: HostView, target_utilisation: float, fixed: frozenset[str] = frozenset()
) -> tuple[OperatorView, ...]:
    """The lightest set of operators whose leaving brings the host down to the target.

    Equivalently: what stays is the largest subset sum not above target x capacity. `fixed`
    operators (those already on the move) stay in any case. Of equally good sets the one that
    leaves more state where it is wins.
    """
    movable = [op for op in host.operators if op.name not in fixed]
    pinned = sum(op.use.cpu_cores for op in host.operators if op.name in fixed)
    room = target_utilisation * host.capacity.cpu_cores - pinned
    movable.sort(key=lambda op: (op.state_mb, op.name))
    if room <= 0.0:
        return tuple(op for op in movable if op.use.cpu_cores > 0.0)
    per_core = min(GRID_PER_CORE, MOST_UNITS / room)
    # Rounded up, so that what stays never exceeds the target.
    units = [ceil(op.use.cpu_cores * per_core - SLACK) for op in movable]
    stays = _largest_subset(units, floor(room * per_core + SLACK))
    return tuple(op for op, kept in zip(movable, stays, strict=True) if not kept)


def first_fit_decreasing(
    operators: Iterable[OperatorView], bins: Sequence[Bin], links: Mapping[str, frozenset[str]]
) -> Placement:
    """Heaviest first, each on the fitting bin with most neighbours; the first of equals.

    `links` names each operator's neighbours: those that feed it and those that it feeds.
    """
    room = {one.name: one for one in bins}
    assigned: dict[str, str] = {}
    unplaced: list[OperatorView] = []
    for operator in sorted(operators, key=lambda op: (-op.use.cpu_cores, op.name)):
        fitting = [one for one in room.values() if operator.use.fits_in(one.free)]
        if not fitting:
            unplaced.append(operator)
            continue
        neighbours = links.get(operator.name, frozenset())
        chosen = max(fitting, key=lambda one: len(neighbours & one.operators))
        room[chosen.name] = _with(chosen, operator)
        assigned[operator.name] = chosen.name
    return Placement(assigned=assigned, unplaced=tuple(unplaced), bins=tuple(room.values()))


def bin_of(host: HostView, fill_to: float) -> Bin:
    """A host's room for more operators, up to `fill_to` of its CPU and all of the rest."""
    return Bin(
        name=host.name,
        free=_ceiling(host.capacity, fill_to) - host.use,
        operators=frozenset(op.name for op in host.operators),
    )


def empty_bin(name: str, capacity: Resources, fill_to: float) -> Bin:
    return Bin(name=name, free=_ceiling(capacity, fill_to))


def neighbours_of(operators: Iterable[OperatorView]) -> dict[str, frozenset[str]]:
    """Operator -> the operators it exchanges tuples with."""
    links: dict[str, set[str]] = {}
    for operator in operators:
        for upstream in operator.upstream:
            links.setdefault(operator.name, set()).add(upstream)
            links.setdefault(upstream, set()).add(operator.name)
    return {name: frozenset(found) for name, found in links.items()}


def _ceiling(capacity: Resources, fill_to: float) -> Resources:
    return replace(capacity, cpu_cores=capacity.cpu_cores * fill_to)


def _with(one: Bin, operator: OperatorView) -> Bin:
    return Bin(
        name=one.name,
        free=one.free - operator.use,
        operators=one.operators | {operator.name},
    )


def _largest_subset(weights: Sequence[int], room: int) -> list[bool]:
    """Subset sum by dynamic programming; bit k of `reachable[i]`: the first i weights make k.

    Walking back, the last weight that can be part of the best sum is, so of equally good subsets
    the one with later entries is found.
    """
    mask = (1 << (room + 1)) - 1
    reachable = [1]
    for weight in weights:
        reachable.append((reachable[-1] | reachable[-1] << weight) & mask)
    best = reachable[-1].bit_length() - 1
    chosen = [False] * len(weights)
    for index in range(len(weights) - 1, -1, -1):
        without = best - weights[index]
        if without >= 0 and reachable[index] >> without & 1:
            chosen[index] = True
            best = without
    return chosen
