"""Curves for the page, and decisions: down-sampled, never cut off."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillway.model import Decided, KeepFraction
from spillway.watch.series import TIERS, Floats, Merge, Series
from spillway.watch.story import COLUMNS, Curves, Story

LONGEST_S = TIERS[-1][0] * (TIERS[-1][1] - 1)
MOST_POINTS = 2000
_PER_S = {"offered": "offered_per_s", "kept": "kept_per_s", "shed": "shed_per_s"}
_OF_ALL: Mapping[str, Merge] = {"waiting": "sum", "waiting_s": "max"}  # states of a class
_SILENT_S = 60.0  # a query without a decision for so long is waited for by nobody
_LEAST_KNOWN = 0.3  # of a point, before a rate is made of it
_PER_BATCH = ("batch_s", "fixed_s", "kept_s", "scanned_s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """So many points over the last seconds, or of those only the end."""

    seconds: float
    points: int
    last_s: float = math.inf


def history_of(story: Story, until_s: float, asked: Asked) -> dict[str, Any]:
    """Columns of every query and class."""
    with story.lock:
        queries = {name: _points(c, until_s, asked) for name, c in story.queries.items()}
        of_class: dict[str, list[_Points]] = {}
        for name, class_name in story.class_of.items():
            of_class.setdefault(class_name, []).append(queries[name])
        shares = {name: _shares(given, until_s, asked) for name, given in story.quotas.items()}
    classes = {name: _columns(_together(points)) for name, points in of_class.items()}
    return {
        "until_s": until_s,
        "queries": {name: _columns(points) for name, points in queries.items()},
        "classes": {n: classes.get(n, {}) | shares.get(n, {}) for n in {**classes, **shares}},
    }


def decision_of(decided: Decided) -> dict[str, Any]:
    measured, decision = decided.measurement, decided.decision
    action = decision.action
    keeps: dict[str, float | None] = {"keep_fraction": None, "keep_tuples": None}
    if isinstance(action, KeepFraction):
        keeps["keep_fraction"] = action.fraction
    else:
        keeps["keep_tuples"] = action.tuples
    return {
        "time_s": measured.time_s,
        "query": measured.query,
        "class": measured.class_name,
        "reason": decision.reason,
        **keeps,
        "target": str(measured.target),
        "delay_s": measured.delay_s,
        "offered_tuples": measured.offered_tuples,
        "admitted_tuples": measured.admitted_tuples,
        "shed_tuples": measured.shed_tuples,
        "waiting_tuples": measured.backlog.pending_tuples,
        "waiting_s": measured.backlog.oldest_age_s,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Points:
    """Sums, peaks and states at some points of time, and how much of each is known by now."""

    times_s: Floats
    known_s: Floats
    until_s: float
    found: Mapping[str, Floats]

    @property
    def step_s(self) -> float:
        return float(self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 1.0


def _points(curves: Curves, until_s: float, asked: Asked) -> _Points:
    times_s, found = curves.counts.read(
        until_s - asked.seconds, until_s, asked.points, asked.last_s
    )
    step_s = float(times_s[1] - times_s[0]) if len(times_s) > 1 else 1.0
    begins_s = np.maximum(times_s - step_s, curves.began_s)
    known_s = np.clip(np.minimum(times_s, curves.until_s) - begins_s, 0.0, step_s)
    return _Points(times_s=times_s, known_s=known_s, until_s=curves.until_s, found=found)


def _together(queries: list[_Points]) -> _Points:
    """Of a class: a moment is known when all of its queries that are at work know it."""
    newest_s = max(points.until_s for points in queries)
    at_work = [points for points in queries if points.until_s > newest_s - _SILENT_S]
    found = {
        name: _merged([points.found[name] for points in queries], merge)
        for name, merge in COLUMNS.items()
    }
    for name, merge in _OF_ALL.items():
        found[name] = _merged([_carried(points.found[name]) for points in queries], merge)
    return _Points(
        times_s=queries[0].times_s,
        known_s=np.min([points.known_s for points in at_work], axis=0),
        until_s=min(points.until_s for points in at_work),
        found=found,
    )


def _merged(columns: list[Floats], merge: Merge) -> Floats:
    stacked = np.vstack(columns)
    unknown = np.isnan(stacked).all(axis=0)
    if merge == "sum":
        return np.where(unknown, np.nan, np.nansum(stacked, axis=0))
    return np.where(unknown, np.nan, np.fmax.reduce(stacked))


def _carried(values: Floats) -> Floats:
    """What held at a query's last decision holds until the next."""
    places = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
    return values[places]


def _columns(points: _Points) -> dict[str, Any]:
    found = points.found
    known_s = np.where(points.known_s > _LEAST_KNOWN * points.step_s, points.known_s, np.nan)
    columns: dict[str, Floats] = {
        "delay_s": _ratio(found["delay_tuples_s"], found["delivered"]),
        "worst_s": found["worst_s"],
        "target_s": found["target_s"],
        "waiting": found["waiting"],
        "waiting_s": found["waiting_s"],
        **{per_s: found[name] / known_s for name, per_s in _PER_S.items()},
        **{name: _ratio(found[name], found["batches"]) for name in _PER_BATCH},
    }
    return {"step_s": points.step_s, "times_s": points.times_s.tolist(), **_listed(columns)}


def _shares(series: Series, until_s: float, asked: Asked) -> dict[str, Any]:
    times_s, found = series.read(until_s - asked.seconds, until_s, asked.points, asked.last_s)
    step_s = float(times_s[1] - times_s[0]) if len(times_s) > 1 else 1.0
    return {"step_s": step_s, "times_s": times_s.tolist(), **_listed(found)}


def _ratio(of: Floats, by: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(by > 0.0, of / by, np.nan)


def _listed(columns: Mapping[str, Floats]) -> dict[str, list[float | None]]:
    """With four digits; null where nothing is known."""
    return {name: _rounded(values) for name, values in columns.items()}


def _rounded(values: Floats) -> list[float | None]:
    known = np.where(np.isfinite(values) & (values != 0.0), np.abs(values), 1.0)
    scale = 10.0 ** (np.floor(np.log10(known)) - 3.0)
    rounded: list[float] = (np.round(values / scale) * scale).tolist()
    # By decimals, so that a number is as short as its digits.
    places = np.clip(3.0 - np.floor(np.log10(known)), 0.0, 12.0).astype(int).tolist()
    return [
        None if value != value else round(value, digits)
        for value, digits in zip(rounded, places, strict=True)
    ]
