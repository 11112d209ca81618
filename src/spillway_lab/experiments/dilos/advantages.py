"""dilos-advantages: five ways to manage three classes under constant load (table 8, fig. 25-27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import panels
from spillway_lab.engine.class_networks import CLASSES
from spillway_lab.experiments.dilos.claims import saved, spared
from spillway_lab.experiments.dilos.panels import class_lines, quota_lines, side_by_side
from spillway_lab.experiments.dilos.setting import MODES, SOURCE, ClassesRun, Spec, run
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DURATION_S = 12.0
PAPER_MS = {
    "none": (5.25, 7.22, 117132.74),
    "common": (4.01, 4.74, 513.71),
    "separate": (4.91, 7.21, 492.16),
    "dilos": (8.90, 34.18, 487.04),
    "dilos-sharing": (9.05, 36.54, 482.53),
}
PAPER_LOSS = {
    "none": (0.0, 0.0, 0.0),
    "common": (42.19, 42.15, 42.24),
    "separate": (0.0, 0.0, 85.37),
    "dilos": (0.0, 0.0, 24.43),
    "dilos-sharing": (0.0, 0.0, 14.70),
}
# Beside the thesis's five: what batching gives, and the thesis's own load manager.
EXTRAS = {
    "dilos-present-batches": "DILoS, spare capacity at present batch sizes",
    "dilos-aloma": "DILoS with ALoMa",
}
NAMES: Mapping[str, str] = {str(mode): name for mode, name in MODES.items()} | EXTRAS


def specs_of(seed: int, duration_s: float) -> dict[str, Spec]:
    found: dict[str, Spec] = {
        mode: Spec(mode=mode, seed=seed, duration_s=duration_s) for mode in MODES
    }
    found["dilos-present-batches"] = Spec(
        mode="dilos", seed=seed, duration_s=duration_s, batching=False
    )
    found["dilos-aloma"] = Spec(mode="dilos", seed=seed, duration_s=duration_s, law="aloma")
    return found


def advantages(setup: Setup, duration_s: float = DURATION_S) -> Report:
    if setup.plant == "spark":
        from spillway_lab.experiments.dilos.spark import advantages_on_spark  # brings Spark

        return advantages_on_spark(setup)
    specs = specs_of(setup.seed, duration_s)
    runs = run_named(run, specs, setup.progress)
    return Report(
        experiment="dilos-advantages",
        setup=setup,
        results={mode: run.summary() for mode, run in runs.items()},
        checks=_checks(runs),
        tables=side_by_side("with SD_c and QN-A (table 8)", runs, NAMES, PAPER_MS, PAPER_LOSS),
        pictures={"": lambda: _picture(runs)},
    )


def _loss(run: ClassesRun) -> list[float]:
    return [run.classes[name].loss_ratio for name in CLASSES]


def _checks(runs: Mapping[str, ClassesRun]) -> list[Check]:
    return [*_without_synergy(runs), *_with_synergy(runs), *_batching(runs)]


def _without_synergy(runs: Mapping[str, ClassesRun]) -> list[Check]:
    late_s = runs["none"].classes["3"].mean_delay_s
    common, separate = _loss(runs["common"]), _loss(runs["separate"])
    return [
        Check(
            name="without a load manager class 3's delay leaves its target behind",
            paper="117 s, target 0.5 s",
            here=f"{late_s:.1f} s on average after {DURATION_S:g} s, and growing",
            holds=late_s > 3.0 * CLASSES["3"].target.delay_s,
        ),
        Check(
            name="with one common load manager all classes lose alike",
            paper="42.19, 42.15, 42.24 %",
            here=", ".join(f"{loss:.2%}" for loss in common),
            holds=min(common) > 0.0 and max(common) - min(common) < 0.01,
        ),
        Check(
            name="with separate load managers only class 3 loses",
            paper="0, 0, 85.37 %",
            here=", ".join(f"{loss:.2%}" for loss in separate),
            holds=separate[:2] == [0.0, 0.0] and separate[2] > 0.0,
        ),
        Check(
            name="separate load managers lose less in all than a common one",
            paper="28.5 % of all data and 42.2 %",
            here=f"{sum(separate) / 3:.2%} and {sum(common) / 3:.2%}",
            holds=sum(separate) < sum(common),
            note="here the difference is small and may go either way: shedding from classes 1 and"
            " 2 saves almost nothing, because their batches shrink with it",
        ),
    ]


def _with_synergy(runs: Mapping[str, ClassesRun]) -> list[Check]:
    separate, dilos, sharing = (
        _loss(runs[mode])[2] for mode in ("separate", "dilos", "dilos-sharing")
    )
    synergy = {mode: runs[mode] for mode in ("dilos", "dilos-sharing")}
    late = {
        mode: run.classes["3"].mean_delay_s / CLASSES["3"].target.delay_s
        for mode, run in synergy.items()
    }
    return [
        *saved(separate, dilos, sharing, clearly=0.5),
        spared(synergy, {m: NAMES[m] for m in synergy}, "0 % and 8.9 to 36.5 ms"),
        Check(
            name="class 3 keeps its target on average under DILoS",
            paper="487 and 483 of 500 ms",
            here=", ".join(f"{share:.0%} of it" for share in late.values()),
            holds=max(late.values()) <= 1.05,
        ),
    ]


def _batching(runs: Mapping[str, ClassesRun]) -> list[Check]:
    """Fig. 26 and 27: where the additional capacity comes from."""
    before, after = runs["separate"].classes, runs["dilos"].classes
    cheaper = {c: _settled(after[c].cost_s) / _settled(before[c].cost_s) for c in ("1", "2")}
    present, full = _loss(runs["dilos-present-batches"])[2], _loss(runs["dilos"])[2]
    slower = {c: after[c].mean_delay_s / before[c].mean_delay_s for c in ("1", "2")}
    return [
        Check(
            name="a tuple of class 1 costs less when the class is slowed: its batches are longer",
            paper="lower processing cost per tuple",
            here=f"{1.0 - cheaper['1']:.0%} less (class 2: {1.0 - cheaper['2']:.0%})",
            holds=cheaper["1"] < 0.95,
        ),
        Check(
            name="classes 1 and 2 are slower in return",
            paper="1.8 and 4.7 times",
            here=f"{slower['1']:.1f} and {slower['2']:.1f} times",
            holds=min(slower.values()) > 1.0,
        ),
        Check(
            name="batching gives more than repairing over-provisioning does",
            paper="class 3 receives even more capacity",
            here=f"class 3 loses {full:.2%}; {present:.2%} when the spare capacity is counted at"
            " present batch sizes",
            holds=full < present,
        ),
    ]


def _settled(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.mean(values[len(values) // 2 :]))


def _picture(runs: Mapping[str, ClassesRun]) -> Figure:
    figure, axes = panels(4, height=2.2)
    title = "response times, DILoS with sharing; targets dashed (fig. 25)"
    class_lines(axes[0], runs["dilos-sharing"], "delay", y="ms", title=title, log=True)
    class_lines(
        axes[1], runs["separate"], "headroom", y="headroom", title="separate managers (fig. 26)"
    )
    class_lines(axes[2], runs["dilos"], "headroom", y="headroom", title="DILoS (fig. 27)")
    quota_lines(axes[3], runs["dilos"], title="quotas of the class scheduler, DILoS")
    figure.suptitle("Three classes, constant load (thesis fig. 25-27)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dilos-advantages",
        title="three classes under constant load: none, common, separate, DILoS, sharing",
        source=f"{SOURCE}, table 8, fig. 25-27",
        run=advantages,
        plants=("sim", "spark"),
    ),
)
