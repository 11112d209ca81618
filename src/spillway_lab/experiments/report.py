"""What an experiment hands back: results, checks against the paper, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from spillway.report import Progress, Table, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PlantName = Literal["sim", "spark", "cluster"]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the user chose: the plant, the seed, and where progress goes."""

    plant: PlantName = "sim"
    seed: int = 1
    progress: Progress = silent


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim: what the paper says, what we measure, and whether it holds here.

    A check that does not hold stays in the list, with a remark that explains it.
    """

    name: str
    paper: str
    here: str
    holds: bool
    note: str = ""  # said in any case
    why_not: str = ""  # said when it does not hold

    @property
    def remark(self) -> str:
        return self.note or ("" if self.holds else self.why_not)


@dataclass(frozen=True, kw_only=True)
class Report:
    """One experiment's outcome. `results` is JSON: dicts, lists, numbers and strings."""

    experiment: str
    setup: Setup
    results: Mapping[str, Any]
    checks: Sequence[Check] = ()
    tables: Sequence[Table] = ()
    pictures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "plant": self.setup.plant,
            "seed": self.setup.seed,
            "results": self.results,
            "checks": [
                {"name": c.name, "paper": c.paper, "here": c.here, "holds": c.holds}
                | ({"note": c.remark} if c.remark else {})
                for c in self.checks
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A named experiment: which figures and tables of which paper, and how to run it."""

    name: str
    title: str
    source: str  # paper and figure or table numbers
    run: Callable[[Setup], Report]
    plants: tuple[PlantName, ...] = ("sim",)
