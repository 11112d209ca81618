"""A gate before a split spends what its load manager grants by the roadmap.

A load manager thinks in whole tuples: rows that every query of the fused plan sees. It grants a
fraction f of those that wait. The same pipeline time buys more when the queries with the least
worth per second see fewer rows, so the gate asks the roadmap for the drops that save 1 - f of the
load. What a batch really cost goes back to the load manager in whole tuples again, so its cost per
tuple stays that of the whole plan, and its law need not know that there is a split.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spillway.errors import SpillwayError, require
from spillway.gate.masks import QueryShare, shares_of
from spillway.gate.roadmap import Inflow, Part, Roadmap, roadmap

SHARED = "shared"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What the gate keeps of everything, and each query's share of that."""

    keep_fraction: float
    shares: tuple[QueryShare, ...]

    @property
    def reason(self) -> str:
        return ", ".join(
            f"{s.name} {self.keep_fraction * s.keep_ppm / 1e4:.3g} %" for s in self.shares
        )


@dataclass(frozen=True, kw_only=True)
class Split:
    """The queries of a fused plan: costs in any unit, weights in any other."""

    shared_cost: float
    costs: Mapping[str, float]
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        require(len(self.costs) > 0, "queries of a split", 0, "at least one")
        require(sum(self.costs.values()) > 0.0, "costs of a split", self.costs, "not all zero")

    @classmethod
    def parse(cls, text: str) -> "Split":
        """'shared:1,alerts:1:10,scores:8:1': what all share, then name:cost:weight."""
        costs: dict[str, float] = {}
        weights: dict[str, float] = {}
        shared = 0.0
        for item in text.split(","):
            name, *numbers = item.strip().split(":")
            values = [_number(item, number) for number in numbers]
            if name == SHARED and len(values) == 1:
                shared = values[0]
            elif name and name != SHARED and name not in costs and len(values) == 2:
                costs[name], weights[name] = values
            else:
                raise _malformed(item)
        return cls(shared_cost=shared, costs=costs, weights=weights)

    @property
    def text(self) -> str:
        """What `parse` reads: the gate's option `split`."""
        queries = (f"{name}:{cost!r}:{self.weights[name]!r}" for name, cost in self.costs.items())
        return ",".join([f"{SHARED}:{self.shared_cost!r}", *queries])

    @cached_property
    def _roadmap(self) -> Roadmap:
        queries = tuple(
            Part(name=name, cost_s=cost, weight=self.weights[name])
            for name, cost in self.costs.items()
        )
        shared = Part(name=SHARED, cost_s=self.shared_cost, readers=queries)
        return roadmap([Inflow(rate_per_s=1.0, part=shared)])

    def spend(self, fraction: float) -> Spending:
        """The drops that leave `fraction` of the load, cheapest first."""
        keep = self._roadmap.drops((1.0 - fraction) * self._roadmap.load).keep
        if keep[SHARED] <= 0.0:
            everyone = shares_of(dict.fromkeys(self.costs, 1.0))
            return Spending(keep_fraction=0.0, shares=everyone)
        shares = shares_of({name: keep[name] for name in self.costs})
        return Spending(keep_fraction=keep[SHARED], shares=shares)

    def whole_tuples(self, kept_tuples: int, seen_tuples: Mapping[str, int]) -> int:
        """What a batch cost, in tuples that every query sees; no shares: all of them saw all."""
        if not seen_tuples:
            return kept_tuples
        spent = self.shared_cost * kept_tuples
        spent += sum(cost * seen_tuples[name] for name, cost in self.costs.items())
        return round(spent / self._roadmap.load)


def _number(item: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise _malformed(item) from error


def _malformed(item: str) -> SpillwayError:
    return SpillwayError(
        f"split holds '{item}': it is written 'shared:cost,query:cost:weight,...', for example"
        " 'shared:1,alerts:1:10,scores:8:1', with every query once"
    )
