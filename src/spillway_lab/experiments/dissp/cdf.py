"""dissp-cdf: how latencies are distributed under the controller (fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.experiments.dissp.setting import (
    CONTROLLED_S,
    SOURCE,
    TARGETS_S,
    Found,
    Spec,
    run,
)
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cdf(setup: Setup, duration_s: float = CONTROLLED_S) -> Report:
    specs = {
        t: Spec(queries=200, target_s=t, seed=setup.seed, duration_s=duration_s) for t in TARGETS_S
    }
    runs = run_named(run, specs, setup.progress)
    spread = {t: _quantile(f, 0.9) - _quantile(f, 0.1) for t, f in runs.items()}
    quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = [
        (t, f.settled_s, *(_quantile(f, q) for q in quantiles), spread[t]) for t, f in runs.items()
    ]
    columns = ("target (s)", "mean (s)", *(f"p{100 * q:g} (s)" for q in quantiles), "p90 - p10 (s)")
    return Report(
        experiment="dissp-cdf",
        setup=setup,
        results={
            f"{t:g}": {
                "mean_s": round(f.settled_s, 4),
                "quantiles_s": {f"{q:g}": round(_quantile(f, q), 4) for q in quantiles},
                "p90_minus_p10_s": round(spread[t], 4),
            }
            for t, f in runs.items()
        },
        checks=_checks(runs, list(spread.values())),
        tables=[Table(title="latencies at 200 queries (fig. 7)", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(runs)},
    )


def _quantile(found: Found, share: float) -> float:
    place = int(np.searchsorted(found.cdf_share, share))
    return float(found.cdf_s[min(place, len(found.cdf_s) - 1)])


def _checks(runs: Mapping[float, Found], spread: Sequence[float]) -> list[Check]:
    off = max(abs(f.settled_s - t) / t for t, f in runs.items())
    return [
        Check(
            name="the mean is close to the target in all four cases",
            paper="very close",
            here=f"at most {off:.1%} off",
            holds=off <= 0.1,
        ),
        Check(
            name="the variation around the mean grows with the target",
            paper="increases with the target",
            here=", ".join(f"{s:.2f}" for s in spread) + " s between p10 and p90",
            holds=all(a < b for a, b in pairwise(spread)),
        ),
    ]


def _picture(runs: Mapping[float, Found]) -> Figure:
    figure, axes = panels(1, height=4.0)
    for t, found in runs.items():
        line = axes[0].plot(found.cdf_s, found.cdf_share, label=f"T = {t:g} s")[0]
        axes[0].axvline(t, color=line.get_color(), linestyle=":", linewidth=1.0)
    axes[0].set_xlim(0.0, 6.0)
    axes[0].legend(fontsize=8)
    label(axes[0], x="latency (s)", y="share of results")
    figure.suptitle("Latency distribution at 200 queries (dissp paper fig. 7); dotted: targets")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dissp-cdf",
        title="latency distribution under the controller at 200 queries",
        source=f"{SOURCE}, fig. 7",
        run=cdf,
    ),
)
