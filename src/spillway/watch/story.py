"""What a journal tells, entry by entry: curves, last decisions, what was said of whom.

The same fold serves a running flow, a journal that is read from disk, and virtual time.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from spillway.classes.capacity import original_shares
from spillway.journal.entries import Entry, Event
from spillway.model import BatchRecord, Decided, Measurement, Prices
from spillway.watch.series import Floats, Merge, Series
from spillway.watch.views import BatchTime, Pace, Said
from spillway.watch.words import said_of

DECISIONS_KEPT = 2000
SAID_KEPT = 500
RECENT_S = 10.0

COLUMNS: Mapping[str, Merge] = {
    "offered": "sum",
    "kept": "sum",
    "shed": "sum",
    "delivered": "sum",  # tuples whose delay is known
    "delay_tuples_s": "sum",  # delay times tuples
    "worst_s": "max",
    "target_s": "last",
    "waiting": "last",
    "waiting_s": "max",
    "batches": "sum",
    "batch_s": "sum",
    "fixed_s": "sum",
    "kept_s": "sum",
    "scanned_s": "sum",
}
_AT_THE_END = (
    "delivered",
    "delay_tuples_s",
    "batches",
    "batch_s",
    "fixed_s",
    "kept_s",
    "scanned_s",
)
_SHARES: Mapping[str, Merge] = {"quota": "last", "original": "last"}


@dataclass(kw_only=True)
class Curves:
    """One query."""

    counts: Series = field(default_factory=lambda: Series(COLUMNS))
    began_s: float = math.inf
    until_s: float = -math.inf  # the last decision

    def add(self, began_s: float, now_s: float, values: Mapping[str, float]) -> None:
        """What came and went is spread over the time in which it did; batches ended just now."""
        known = _NOTHING | dict(values)
        ended = {name: known[name] for name in _AT_THE_END}
        self.counts.add(began_s, now_s, known | dict.fromkeys(ended, 0.0))
        self.counts.add(now_s, now_s, _NOTHING | ended)
        self.until_s = max(self.until_s, now_s)
        self.began_s = min(self.began_s, began_s)

    def lately(self, now_s: float, recent_s: float = RECENT_S) -> tuple[Pace, BatchTime]:
        """The last seconds that are known: of a batch that runs nothing is, until it has ended."""
        until_s = self.until_s if now_s - self.until_s < 2.0 * recent_s else now_s
        times_s, found = self.counts.read(until_s - recent_s, until_s, 10_000)
        known_s = times_s[~np.isnan(found["offered"])]
        seconds = max(1.0, until_s - float(known_s[0]) + 1.0) if len(known_s) else 1.0
        delivered, waiting = _sum(found["delivered"]), _last(found["waiting"])
        worst = found["worst_s"][found["worst_s"] >= 0.0]
        pace = Pace(
            delay_s=_sum(found["delay_tuples_s"]) / delivered if delivered > 0.0 else None,
            worst_s=float(worst.max()) if len(worst) else None,
            offered_per_s=_sum(found["offered"]) / seconds,
            kept_per_s=_sum(found["kept"]) / seconds,
            shed_per_s=_sum(found["shed"]) / seconds,
            waiting_tuples=int(waiting) if waiting == waiting else 0,
            waiting_s=_or_zero(_last(found["waiting_s"])),
        )
        return pace, _batch_of(found)


@dataclass(frozen=True, kw_only=True)
class Share:
    """What the class scheduler said last of a class."""

    quota: float
    interval_s: float = 0.0
    reason: str = ""


class Story:
    """Told by one thread, asked by others."""

    def __init__(self) -> None:
        self._original: Mapping[str, float] = {}
        self.queries: dict[str, Curves] = {}
        self.quotas: dict[str, Series] = {}  # by class, over time
        self.class_of: dict[str, str] = {}  # by query
        self.last: dict[str, Decided] = {}  # by query
        self.shares: dict[str, Share] = {}  # by class
        self.losses: dict[str, Mapping[str, int]] = {}  # by gate
        self.decisions: deque[Decided] = deque(maxlen=DECISIONS_KEPT)
        self.said: deque[Said] = deque(maxlen=SAID_KEPT)
        self.started: Mapping[str, Any] = {}
        self.lock = Lock()

    def tell(self, entries: Iterable[Entry]) -> None:
        with self.lock:
            for entry in entries:
                if isinstance(entry, Decided):
                    self._decided(entry)
                else:
                    self._event(entry)

    def reported(
        self, query: str, class_name: str, span_s: tuple[float, float], values: Mapping[str, float]
    ) -> None:
        """What was measured elsewhere between two times, where decisions are not told."""
        with self.lock:
            self.class_of[query] = class_name
            self.queries.setdefault(query, Curves()).add(*span_s, values)

    def original(self, priorities: Mapping[str, int]) -> None:
        """What each class may use by its priority, which may change."""
        self._original = original_shares(priorities)

    def _decided(self, decided: Decided) -> None:
        measured = decided.measurement
        curves = self.queries.setdefault(measured.query, Curves())
        curves.add(measured.time_s - measured.period_s, measured.time_s, _values(measured))
        self.class_of[measured.query] = measured.class_name
        self.last[measured.query] = decided
        self.decisions.append(decided)

    def _event(self, event: Event) -> None:
        given = event.fields
        if event.kind == "started":
            self.started = given
            self.original({n: c["priority"] for n, c in given.get("classes", {}).items()})
        elif event.kind == "losses":
            self.losses[str(given["gate"])] = {k: v for k, v in given.items() if k != "gate"}
        elif event.kind == "quota":
            name = str(given["class_name"])
            share = Share(
                quota=float(given["quota"]),
                interval_s=float(given.get("interval_s", 0.0)),
                reason=str(given.get("reason", "")),
            )
            self.shares[name] = share
            values = {"quota": share.quota, "original": self._original.get(name, math.nan)}
            series = self.quotas.setdefault(name, Series(_SHARES))
            series.add(event.time_s, event.time_s, values)
        said = said_of(event)
        if said is not None:
            self.said.append(said)


_NOTHING = {name: 0.0 for name, merge in COLUMNS.items() if merge == "sum"}


def _values(measured: Measurement) -> dict[str, float]:
    parts = [_parts(batch, measured.prices) for batch in measured.batches]
    known = measured.delay_s is not None
    return {
        "offered": measured.offered_tuples,
        "kept": measured.admitted_tuples,
        "shed": measured.shed_tuples,
        "delivered": measured.completed_tuples if known else 0.0,
        "delay_tuples_s": (measured.delay_s or 0.0) * measured.completed_tuples,
        "worst_s": measured.delay_s if measured.delay_s is not None else math.nan,
        "target_s": measured.target.delay_s,
        "waiting": measured.backlog.pending_tuples,
        "waiting_s": measured.backlog.oldest_age_s,
        "batches": len(parts),
        "batch_s": sum(batch.duration_s for batch in measured.batches),
        "fixed_s": sum(fixed for fixed, _, _ in parts),
        "kept_s": sum(kept for _, kept, _ in parts),
        "scanned_s": sum(scanned for _, _, scanned in parts),
    }


def _parts(batch: BatchRecord, prices: Prices | None) -> tuple[float, float, float]:
    """What it took, split in the proportions of what its parts were expected to take."""
    if prices is None:
        return batch.duration_s, 0.0, 0.0
    kept_s = prices.kept_s * batch.kept_tuples
    scanned_s = prices.scanned_s * batch.scanned_tuples
    expected_s = prices.fixed_s + kept_s + scanned_s
    scale = batch.duration_s / expected_s if expected_s > 0.0 else 0.0
    return scale * prices.fixed_s, scale * kept_s, scale * scanned_s


def _sum(values: Floats) -> float:
    return float(values[values == values].sum())


def _last(values: Floats) -> float:
    known = values[values == values]
    return float(known[-1]) if len(known) else math.nan


def _or_zero(value: float) -> float:
    return value if value == value else 0.0


def _batch_of(found: Mapping[str, Floats]) -> BatchTime:
    count = _sum(found["batches"])
    if count < 0.5:
        return BatchTime()
    return BatchTime(
        batches=round(count),
        total_s=_sum(found["batch_s"]) / count,
        fixed_s=_sum(found["fixed_s"]) / count,
        kept_s=_sum(found["kept_s"]) / count,
        scanned_s=_sum(found["scanned_s"]) / count,
    )
