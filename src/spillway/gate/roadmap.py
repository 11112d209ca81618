"""Where to drop: which part of a query network gives up its tuples first.

A network is a forest: streams on top, parts of queries below, a split wherever a part has several
readers. One tuple that enters part i costs (thesis eq. 3.2, recursive over shared parts)

    load coefficient:   K_i = c_i + s_i * (sum of K over its readers)
    worth coefficient:  V_i = s_i * (w_i + sum of V over its readers)

with cost c, selectivity s and w the priority weight of a result that leaves the network there. A
drop at part i loses V_i and gains K_i per tuple: its loss/gain ratio is V_i / K_i. Behind a split
only that branch loses; the shared part above it is still paid for.

A roadmap puts the drops in order. Fractions kept never grow on the way down, so what can go are
subtrees, and the least loss for a given gain is a linear programme over a forest. Its optimum is
greedy over blocks: a part that is worth less per second than a part below it can never go before
it, so the two go together. Blocks in order of their ratio are optimal for every amount at once:
plans are looked up, not solved (Aurora's load shedding roadmap, ctrl paper section 2).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from spillway.errors import SpillwayError, require

NOTHING_TO_SHED = 1e-12


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a query plan that every tuple passes as a whole, and who reads its results.

    `weight` is what one result is worth that leaves the network here: the query's priority.
    """

    name: str
    cost_s: float  # pipeline time per tuple that enters
    selectivity: float = 1.0
    weight: float = 0.0
    readers: tuple["Part", ...] = ()

    def __post_init__(self) -> None:
        for what in ("cost_s", "selectivity", "weight"):
            value = getattr(self, what)
            require(0.0 <= value < inf, f"{what} of '{self.name}'", value, "a number from zero up")

    @cached_property
    def load_coefficient_s(self) -> float:
        """Pipeline time that one tuple causes here and below."""
        return self.cost_s + self.selectivity * sum(r.load_coefficient_s for r in self.readers)

    @cached_property
    def worth_coefficient(self) -> float:
        """Weighted results that one tuple gives here and below."""
        below = sum(reader.worth_coefficient for reader in self.readers)
        return self.selectivity * (self.weight + below)


@dataclass(frozen=True, kw_only=True)
class Inflow:
    """A stream: the gate stands before its part."""

    rate_per_s: float
    part: Part

    def __post_init__(self) -> None:
        what = f"rate of stream '{self.part.name}'"
        require(0.0 <= self.rate_per_s < inf, what, self.rate_per_s, "a number from zero up")


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A place to drop, while nothing is dropped yet: at a gate, or before one reader of a split."""

    name: str
    tuples_per_s: float
    gain: float  # load saved when all of it goes: seconds of pipeline time per second
    loss_per_s: float  # weighted results

    @property
    def ratio(self) -> float:
        """Weighted results lost for each second of pipeline time saved."""
        return _ratio(self.loss_per_s, self.gain)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Parts that go together, the topmost one first: that is where they are dropped."""

    parts: tuple[str, ...]
    gain: float
    loss_per_s: float

    @property
    def location(self) -> str:
        return self.parts[0]

    @property
    def ratio(self) -> float:
        return _ratio(self.loss_per_s, self.gain)

    def joined(self, below: "Step") -> "Step":
        return Step(
            parts=self.parts + below.parts,
            gain=self.gain + below.gain,
            loss_per_s=self.loss_per_s + below.loss_per_s,
        )


@dataclass(frozen=True, kw_only=True)
class Drops:
    """The cheapest drops for one amount of load.

    `keep` is the fraction of its undisturbed input that each part still gets; `drop` what is
    dropped right before it, as a fraction of what reaches that place.
    """

    keep: Mapping[str, float]
    drop: Mapping[str, float]
    shed_load: float
    loss_per_s: float


@dataclass(frozen=True, kw_only=True)
class Roadmap:
    """Drops in the order in which they are worth it: ratios ascend."""

    steps: tuple[Step, ...]
    above: Mapping[str, str | None]  # who feeds each part; None for a stream

    @property
    def load(self) -> float:
        return sum(step.gain for step in self.steps)

    @property
    def worth_per_s(self) -> float:
        return sum(step.loss_per_s for step in self.steps)

    def drops(self, shed_load: float) -> Drops:
        """The drops that save `shed_load`; everything goes when the network has no more than that.

        All steps but one are taken in full or not at all.
        """
        require(shed_load >= 0.0, "load to shed", shed_load, "zero or above")
        keep = dict.fromkeys(self.above, 1.0)
        left, lost_per_s = shed_load, 0.0
        for step in self.steps:
            if left <= NOTHING_TO_SHED * self.load:
                break
            share = 1.0 if left >= step.gain else left / step.gain
            keep.update(dict.fromkeys(step.parts, 1.0 - share))
            left -= share * step.gain
            lost_per_s += share * step.loss_per_s
        return Drops(
            keep=keep,
            drop={name: _dropped(name, keep, self.above) for name in keep},
            shed_load=shed_load - max(0.0, left),
            loss_per_s=lost_per_s,
        )

    def uniform(self, shed_load: float) -> Drops:
        """The same fraction at every gate and nothing behind a split: what a roadmap must beat."""
        require(shed_load >= 0.0, "load to shed", shed_load, "zero or above")
        share = min(1.0, shed_load / self.load) if self.load > 0.0 else 0.0
        return Drops(
            keep=dict.fromkeys(self.above, 1.0 - share),
            drop={name: share if fed is None else 0.0 for name, fed in self.above.items()},
            shed_load=share * self.load,
            loss_per_s=share * self.worth_per_s,
        )


def load_of(inflows: Sequence[Inflow]) -> float:
    """L: rate x load coefficient over all streams (thesis eq. 3.1)."""
    return sum(inflow.rate_per_s * inflow.part.load_coefficient_s for inflow in inflows)


def locations(inflows: Sequence[Inflow]) -> tuple[Location, ...]:
    """Every gate and every reader of a split. Inside a chain a later drop only gains less."""
    return tuple(
        Location(
            name=part.name,
            tuples_per_s=rate_per_s,
            gain=rate_per_s * part.load_coefficient_s,
            loss_per_s=rate_per_s * part.worth_coefficient,
        )
        for inflow in inflows
        for part, rate_per_s in _places(inflow.part, inflow.rate_per_s)
    )


def roadmap(inflows: Sequence[Inflow]) -> Roadmap:
    """The roadmap of a network; it holds for as long as its rates, costs and selectivities do."""
    steps: list[Step] = []
    above: dict[str, str | None] = {}
    for inflow in inflows:
        _record(inflow.part, None, above)
        steps += _blocks(inflow.part, inflow.rate_per_s)
    return Roadmap(steps=tuple(sorted(steps, key=lambda step: step.ratio)), above=above)


def _blocks(part: Part, rate_per_s: float) -> list[Step]:
    """The subtree's steps, ratios ascending; the last one holds the part itself.

    A step below whose ratio is not lower than the part's own would come after it, but it is gone
    by then: both are one step. The highest of the steps below is always one that touches the part.
    """
    passed_per_s = rate_per_s * part.selectivity
    own = Step(
        parts=(part.name,),
        gain=rate_per_s * part.cost_s,
        loss_per_s=passed_per_s * part.weight,
    )
    below = [step for reader in part.readers for step in _blocks(reader, passed_per_s)]
    below.sort(key=lambda step: step.ratio)
    while below and below[-1].ratio >= own.ratio:
        own = own.joined(below.pop())
    return [*below, own]


def _places(part: Part, rate_per_s: float, top: bool = True) -> Iterator[tuple[Part, float]]:
    if top:
        yield part, rate_per_s
    for reader in part.readers:
        yield from _places(reader, rate_per_s * part.selectivity, len(part.readers) > 1)


def _record(part: Part, fed_by: str | None, above: dict[str, str | None]) -> None:
    if part.name in above:
        raise SpillwayError(f"two parts of the network are called '{part.name}': names must differ")
    above[part.name] = fed_by
    for reader in part.readers:
        _record(reader, part.name, above)


def _dropped(name: str, keep: Mapping[str, float], above: Mapping[str, str | None]) -> float:
    fed_by = above[name]
    reaching = 1.0 if fed_by is None else keep[fed_by]
    return 1.0 - keep[name] / reaching if reaching > 0.0 else 0.0


def _ratio(loss_per_s: float, gain: float) -> float:
    """What neither costs nor gives anything may go at any time; a loss without gain, never."""
    if gain > 0.0:
        return loss_per_s / gain
    return inf if loss_per_s > 0.0 else 0.0
