"""Curves for the page, and decisions: down-sampled, never cut off."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillway.model import Decided, KeepFraction
from spillway.watch.series import TIERS, Floats
from spillway.watch.story import Curves, Story

LONGEST_S = TIERS[-1][0] * (TIERS[-1][1] - 1)
MOST_POINTS = 2000
_PER_S = {"offered": "offered_per_s", "kept": "kept_per_s", "shed": "shed_per_s"}
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
        queries, classes = dict(story.queries), dict(story.classes)
        return {
            "until_s": until_s,
            "queries": {n: _counts(c, until_s, asked) for n, c in queries.items()},
            "classes": {
                n: _counts(c, until_s, asked) | _shares(c, until_s, asked)
                for n, c in classes.items()
            },
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


def _counts(curves: Curves, until_s: float, asked: Asked) -> dict[str, Any]:
    times_s, found = curves.counts.read(
        until_s - asked.seconds, until_s, asked.points, asked.last_s
    )
    step_s = float(times_s[1] - times_s[0]) if len(times_s) > 1 else 1.0
    columns: dict[str, Floats] = {
        "delay_s": _ratio(found["delay_tuples_s"], found["delivered"]),
        "worst_s": found["worst_s"],
        "target_s": found["target_s"],
        "waiting": found["waiting"],
        "waiting_s": found["waiting_s"],
        **{per_s: found[name] / step_s for name, per_s in _PER_S.items()},
        **{name: _ratio(found[name], found["batches"]) for name in _PER_BATCH},
    }
    return {"step_s": step_s, "times_s": times_s.tolist(), **_listed(columns)}


def _shares(curves: Curves, until_s: float, asked: Asked) -> dict[str, Any]:
    _, found = curves.shares.read(until_s - asked.seconds, until_s, asked.points, asked.last_s)
    return _listed(found)


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
