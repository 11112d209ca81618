"""Two nodes as queues: when results come out with a move, without, and with a pause.

Each node serves one tuple after another; service times are exponential and the same for a tuple
wherever it is served, so that differences come from the move alone. The mean is chosen such that
the response without migration is the thesis's: 1 / (1/service - rate) for a queue of that kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.cluster.migration.handoff import Migrated, Produced, Stream
from spillway.cluster.migration.reference import Row
from spillway_lab.experiments.unimico.queries import TICKS_PER_S, PaperQuery
from spillway_lab.simulated_cluster.moves import PauseAndReplay

Floats = npt.NDArray[np.float64]

RATE_PER_S = 40.0  # of each input
KEYS = 100
DURATION_S = 30.0
ASKED_S = 10.0
MESSAGE_S = 0.005
SHOWN_S = 2.0  # before and after, as in the figures
TUPLE_MB = 200e-6


@dataclass(frozen=True, kw_only=True)
class Responses:
    """Response times of the results around the move, by way of moving."""

    series: dict[str, tuple[Floats, Floats]]  # (when put out, in s; response, in ms)
    hand_over_s: float
    origin_stops_s: float

    def means_ms(self) -> dict[str, float]:
        return {name: float(ms.mean()) for name, (_, ms) in self.series.items()}

    def worst_ms(self, name: str) -> float:
        return float(self.series[name][1].max())

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            name: {"mean": float(ms.mean()), "std": float(ms.std()), "max": float(ms.max())}
            for name, (_, ms) in self.series.items()
        }


def draw_stream(rng: np.random.Generator, paper: PaperQuery) -> Stream:
    """Poisson arrivals on every input."""
    rows: list[tuple[int, int, Row]] = []
    for source in range(paper.query.inputs):
        count = rng.poisson(RATE_PER_S * DURATION_S)
        for ts in np.sort(rng.uniform(0.0, DURATION_S * TICKS_PER_S, size=count)):
            row = Row(int(ts), int(rng.integers(KEYS)), (int(rng.integers(100)),))
            rows.append((int(ts), source, row))
    return [(source, row) for _, source, row in sorted(rows, key=lambda r: r[:2])]


def measure(
    rng: np.random.Generator,
    paper: PaperQuery,
    stream: Stream,
    expected: Sequence[Produced],
    moved: Migrated,
) -> Responses:
    arrival_s = np.array([row.ts for _, row in stream]) / TICKS_PER_S
    rate = RATE_PER_S * paper.query.inputs
    service_s = rng.exponential(1.0 / (1000.0 / paper.without_ms + rate), size=arrival_s.size)
    alone = serve(arrival_s, service_s)
    assert moved.plan is not None
    assert moved.stopped_at is not None
    at_destination = _at_destination(paper, stream, moved, arrival_s, service_s)
    state_mb = 10.0 * rate * TUPLE_MB
    pause_s = PauseAndReplay().duration_s(state_mb, 10.0)
    paused = serve(
        np.where(_within(arrival_s, ASKED_S, pause_s), ASKED_S + pause_s, arrival_s), service_s
    )
    from_s = ASKED_S - SHOWN_S
    stops_s = float(arrival_s[moved.stopped_at])
    until_s = stops_s + SHOWN_S

    def shown(parts: Sequence[tuple[Sequence[Produced], Floats]]) -> tuple[Floats, Floats]:
        where = np.concatenate([[p.position for p in made] for made, _ in parts]).astype(int)
        done = np.concatenate([done[[p.position for p in made]] for made, done in parts])
        inside = (arrival_s[where] >= from_s) & (arrival_s[where] <= until_s)
        order = np.argsort(done[inside], kind="stable")
        response_ms = (done - arrival_s[where])[inside][order] * 1000.0
        return done[inside][order], response_ms

    return Responses(
        series={
            "no migration": shown([(expected, alone)]),
            "UniMiCo": shown([(moved.origin, alone), (moved.destination, at_destination)]),
            "pause and replay": shown([(expected, paused)]),
        },
        hand_over_s=float(arrival_s[min(p.position for p in moved.destination)]),
        origin_stops_s=stops_s,
    )


def _at_destination(
    paper: PaperQuery, stream: Stream, moved: Migrated, arrival_s: Floats, service_s: Floats
) -> Floats:
    """Completion at the destination.

    Operators below the controlling window run from the moment it connects; the controlling one,
    and with it a query of one window, waits for the plan.
    """
    plan, planned_at = moved.plan, moved.planned_at
    assert plan is not None
    assert planned_at is not None
    at_origin = serve(arrival_s[:planned_at], service_s[:planned_at])
    told_s = max(at_origin[-1], ASKED_S + 2 * MESSAGE_S) + MESSAGE_S  # ask, answer; tell
    waits = len(paper.query.operators) == 1
    passes = np.array([row.ts >= plan.source_from[source] for source, row in stream])
    ready_s = np.maximum(arrival_s[passes], told_s) if waits else arrival_s[passes]
    done = np.full(arrival_s.size, np.nan)
    done[passes] = np.maximum(serve(ready_s, service_s[passes]), told_s)
    return done


def serve(ready_s: Floats, service_s: Floats) -> Floats:
    """When each tuple is done at a node that serves one after another."""
    done = np.empty_like(ready_s)
    free_s = 0.0
    for i, (ready, service) in enumerate(zip(ready_s, service_s, strict=True)):
        free_s = max(free_s, ready) + service
        done[i] = free_s
    return done


def _within(times_s: Floats, start_s: float, length_s: float) -> npt.NDArray[np.bool]:
    return (times_s >= start_s) & (times_s < start_s + length_s)
