"""Figures in the form of FUGU's: utilisation and latency bars, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Summary = Mapping[str, float]
Line = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  # x, y

COLOURS = ("#9ecae1", "#4292c6", "#084594")


def bars(title: str, labels: Sequence[str], summaries: Sequence[Summary]) -> Figure:
    """Min, average, max host utilisation on the left; 10th, 50th, 90th percentile on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    used = ("utilisation_min", "utilisation_mean", "utilisation_max")
    _group(left, labels, summaries, used, ("min", "average", "max"))
    left.set(ylim=(0, 1), ylabel="host utilisation")
    late = ("delay_p10_s", "delay_p50_s", "delay_p90_s")
    _group(right, labels, summaries, late, ("10th percentile", "median", "90th percentile"))
    right.set(ylabel="end-to-end delay [s]", yscale="log")
    figure.suptitle(title)
    return figure


def _group(
    axes: Axes,
    labels: Sequence[str],
    summaries: Sequence[Summary],
    keys: Sequence[str],
    names: Sequence[str],
) -> None:
    for offset, (key, name, colour) in enumerate(zip(keys, names, COLOURS, strict=True)):
        places = [position + (offset - 1) * 0.27 for position in range(len(labels))]
        heights = [summary[key] for summary in summaries]
        drawn = axes.bar(places, heights, width=0.25, label=name, color=colour)
        axes.bar_label(drawn, fmt="%.2f", fontsize=7)
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)


def courses(title: str, panels: Mapping[str, Mapping[str, Line]]) -> Figure:
    """Time series: one panel per quantity, one line per name (x in seconds)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 2.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for one, (label, lines) in zip(axes, panels.items(), strict=True):
        for name, (x, y) in lines.items():
            one.plot(x, y, label=name, linewidth=1.1)
        one.set_ylabel(label)
        one.grid(alpha=0.3)
    axes[0].legend(fontsize=8, ncols=6, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    axes[-1].set_xlabel("time [s]")
    figure.suptitle(title)
    return figure
