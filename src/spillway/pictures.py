"""One style for all pictures: colour per load manager, target line, units on every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Mapping[str, str] = {
    "none": "#7f7f7f",
    "fixed": "#bcbd22",
    "aurora": "#d62728",
    "baseline": "#ff7f0e",
    "ctrl": "#1f77b4",
    "dissp": "#8c564b",
    "seamless": "#9467bd",
    "aloma": "#2ca02c",
    "pid": "#e377c2",
    "pie": "#17becf",
    "predictive": "#000000",
}

Numbers = Sequence[float] | npt.NDArray[np.float64]


def panels(rows: int, columns: int = 1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure that needs no display, and its axes from top left to bottom right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, height * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.grid(True, alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat)


def label(axis: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if title:
        axis.set_title(title, loc="left", fontsize=10)


def target_line(axis: Axes, delay_s: float, name: str = "target") -> None:
    axis.axhline(delay_s, color="black", linestyle="--", linewidth=1.0, label=name)


def lines(
    axis: Axes,
    curves: Mapping[str, tuple[Numbers, Numbers]],
    *,
    x: str = "time (s)",
    y: str = "delay (s)",
    title: str = "",
    target_s: float | None = None,
    log: bool = False,
) -> None:
    """One line per name; load managers keep their colour in every picture."""
    for name, (xs, ys) in curves.items():
        law, values = name.split()[0].lower(), np.asarray(ys, dtype=float)
        known = np.isfinite(values)  # a period in which no batch ended has no value
        times = np.asarray(xs, dtype=float)[known]
        axis.plot(times, values[known], label=name, color=COLOURS.get(law), linewidth=1.3)
    if target_s is not None:
        target_line(axis, target_s)
    if log:
        axis.set_yscale("log")
    label(axis, x=x, y=y, title=title)
    axis.legend(fontsize=8, ncols=2)


def bars(
    axis: Axes, values: Mapping[str, Mapping[str, float]], *, y: str, title: str, log: bool = False
) -> None:
    """Groups of bars: {group: {name: value}}. The legend is left to the figure."""
    groups = list(values)
    names = list(next(iter(values.values())))
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        heights = [values[group][name] for group in groups]
        places = np.arange(len(groups)) + (i - (len(names) - 1) / 2) * width
        drawn = axis.bar(places, heights, width, label=name, color=COLOURS.get(name))
        axis.bar_label(drawn, fmt="%.3g", fontsize=7)
    axis.set_xticks(range(len(groups)), groups)
    if log:
        axis.set_yscale("log")
    axis.margins(y=0.15)
    label(axis, y=y, title=title)
