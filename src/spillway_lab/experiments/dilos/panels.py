"""Tables and pictures of runs with three classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.engine.class_networks import CLASSES
from spillway_lab.experiments.dilos.setting import CLASS_COLOURS, ClassesRun
from spillway_lab.experiments.outcomes import Floats, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Printed = Mapping[str, tuple[float, float, float]]  # by mode: the thesis's figure of each class

COLUMNS = tuple(f"class {name}" for name in CLASSES)


def side_by_side(
    title: str, runs: Mapping[str, ClassesRun], names: Mapping[str, str], ms: Printed, loss: Printed
) -> list[Table]:
    """Response time (ms) and data loss (%), every figure with the thesis's in brackets."""

    def table(what: str, printed: Printed, figure: str, factor: float) -> Table:
        rows = []
        for mode, run in runs.items():
            here = [factor * float(getattr(run.classes[name], figure)) for name in CLASSES]
            paper = printed.get(mode, (None,) * 3)
            cells = [_cell(value, other) for value, other in zip(here, paper, strict=True)]
            rows.append((names[mode], *cells))
        return Table(title=f"{what} {title}", columns=("mode", *COLUMNS), rows=rows)

    return [
        table("average response time (ms)", ms, "mean_delay_s", 1e3),
        table("average data loss (%)", loss, "loss_ratio", 100.0),
    ]


def _cell(here: float, paper: float | None) -> str:
    return f"{here:,.2f}" + ("" if paper is None else f"  ({paper:,.2f})")


def class_lines(
    axis: Axes, run: ClassesRun, what: str, *, y: str, title: str = "", log: bool = False
) -> None:
    """One line per class of a figure that the runs have per control period."""
    for name, outcome in run.classes.items():
        colour = CLASS_COLOURS[name]
        axis.plot(
            outcome.time_s, series(outcome, what), color=colour, label=f"class {name}", linewidth=1
        )
        if what == "delay":
            axis.axhline(CLASSES[name].target.delay_s * 1e3, color=colour, ls="--", linewidth=0.8)
    if log:
        axis.set_yscale("log")
    label(axis, x="time (s)", y=y, title=title)
    axis.legend(fontsize=8, ncols=3)


def series(outcome: Outcome, what: str) -> Floats:
    if what == "delay":
        return 1e3 * outcome.delay_s
    if what == "shed":
        return 100.0 * (1.0 - outcome.keep_fraction)
    if what == "rate":
        return outcome.offered_per_s
    return outcome.headroom


def quota_lines(axis: Axes, run: ClassesRun, *, title: str = "") -> None:
    for name, quotas in run.quotas.items():
        axis.step(
            run.quota_times_s,
            quotas,
            where="post",
            color=CLASS_COLOURS[name],
            label=f"class {name}",
        )
    label(axis, x="time (s)", y="share of the machine", title=title)
    axis.legend(fontsize=8, ncols=3)


def course(run: ClassesRun, title: str, *, rates: bool = False) -> Figure:
    """Delays, headrooms, quotas and shedding over time, and what was offered."""
    figure, axes = panels(5 if rates else 4, height=2.0)
    class_lines(axes[0], run, "delay", y="response time (ms)", log=True)
    class_lines(axes[1], run, "headroom", y="headroom")
    quota_lines(axes[2], run)
    class_lines(axes[3], run, "shed", y="shed (%)")
    if rates:
        class_lines(axes[4], run, "rate", y="offered (tuples/s)")
    figure.suptitle(title)
    return figure
