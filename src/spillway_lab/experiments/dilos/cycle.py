"""dilos-cycle: how often capacity should be redistributed (fig. 32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.engine.class_networks import CLASSES, HIGH
from spillway_lab.experiments.dilos.setting import CLASS_COLOURS, SOURCE, ClassesRun, Spec, run
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CYCLE_S = 12.0
CYCLES = (1, 2, 5, 10, 20)  # in load management cycles


def cycle(setup: Setup, duration_s: float = CYCLE_S) -> Report:
    specs = {
        str(periods): Spec(
            mode="dilos-sharing",
            arrivals="sd-r",
            seed=setup.seed,
            duration_s=duration_s,
            cycle_periods=periods,
        )
        for periods in CYCLES
    }
    runs = run_named(run, specs, setup.progress)
    loss = {
        name: {p: 100.0 * run.classes[name].loss_ratio for p, run in runs.items()}
        for name in CLASSES
    }
    rows = [(int(p), *(loss[name][p] for name in CLASSES)) for p in runs]
    columns = ("cycle (periods)", *(f"class {name} loses (%)" for name in CLASSES))
    return Report(
        experiment="dilos-cycle",
        setup=setup,
        results={p: run.summary() for p, run in runs.items()},
        checks=_checks(runs),
        tables=[Table(title="SD_r, QN-B, DILoS with sharing", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(loss)},
    )


def _checks(runs: Mapping[str, ClassesRun]) -> list[Check]:
    class_1 = {int(p): run.classes[HIGH].loss_ratio for p, run in runs.items()}
    total = {int(p): run.total_loss for p, run in runs.items()}
    short = min(class_1[1], class_1[2])
    spread = max(total.values()) - min(total.values())
    return [
        Check(
            name="class 1 loses least with a cycle of one or two periods",
            paper="smallest at 150 to 300 ms",
            here=", ".join(f"{p}: {loss:.2%}" for p, loss in class_1.items()),
            holds=short <= min(class_1.values()),
        ),
        Check(
            name="the length of the cycle matters little",
            paper="the difference is rather small",
            here=f"total loss {min(total.values()):.2%} to {max(total.values()):.2%}",
            holds=spread < 0.03,
        ),
    ]


def _picture(loss: Mapping[str, Mapping[str, float]]) -> Figure:
    figure, axes = panels(1, height=3.5)
    for name, by_cycle in loss.items():
        lengths = [int(p) for p in by_cycle]
        axes[0].plot(
            lengths, list(by_cycle.values()), "o-", color=CLASS_COLOURS[name], label=f"class {name}"
        )
    axes[0].set_xscale("log", base=2)
    axes[0].set_yscale("symlog", linthresh=0.01)
    axes[0].set_ylim(bottom=-0.005, top=2.0 * max(max(c.values()) for c in loss.values()) + 0.1)
    axes[0].set_xticks(list(CYCLES), [str(p) for p in CYCLES])
    label(axes[0], x="redistribution cycle (control periods)", y="data loss (%)")
    axes[0].legend(fontsize=8)
    figure.suptitle("How often capacity moves (thesis fig. 32)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dilos-cycle",
        title="how often capacity should be redistributed",
        source=f"{SOURCE}, fig. 32",
        run=cycle,
    ),
)
