"""What a micro-batch costs on this machine: o + c n + s m, measured through the bare source."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from spillway.gate.sampling import PPM
from spillway.load.oracle import bound_rate_per_s, uniform_length_s, uniform_rate_per_s
from spillway.model import Target
from spillway_lab.benchmarks.overload_run import Sample
from spillway_lab.benchmarks.spark_runs import Bench, Shape, gate, plain

SHARES = (0.5, 1.0, 1.5)  # of the batch size in question
FIRST_GUESS_TUPLES = 1_000_000
WARM_RATE_PER_S, WARM_S = 20_000_000, 60.0
WARM_TURNS = 5
MOST_PER_S = 100_000_000  # of the synthetic log
SETTLED = 0.95  # of the c before: it does not fall any more
SHORT_S, SHORT_BATCHES = 0.12, 24  # what the tuples of a short batch take; about what o is
# s is a hundredth of c and less. It shows between batches that keep as many tuples, of more or
# fewer scanned, in turns; what differs then is the scanning. Many short batches that scan fifty
# times what they keep: at 60 million tuples/s an error of 0.1 ns is 0.6 % of the capacity.
SCAN_PPM, SCAN_SHARE, SCAN_BATCHES = 20_000, 0.25, 40


@dataclass(frozen=True, kw_only=True)
class Calibration:
    fixed_s: float
    kept_s: float
    scanned_s: float

    def batch_s(self, kept: float, scanned: float) -> float:
        return self.fixed_s + self.kept_s * kept + self.scanned_s * scanned

    def slower(self, factor: float) -> "Calibration":
        return Calibration(
            fixed_s=factor * self.fixed_s,
            kept_s=factor * self.kept_s,
            scanned_s=factor * self.scanned_s,
        )

    def with_fixed(self, fixed_s: float, tuples: float) -> "Calibration":
        """Another o, and the c with which whole batches of `tuples` take as long as before."""
        whole_s = self.batch_s(tuples, tuples)
        kept_s = max(0.1 * self.kept_s, (whole_s - fixed_s) / tuples - self.scanned_s)
        return Calibration(fixed_s=fixed_s, kept_s=kept_s, scanned_s=self.scanned_s)

    def capacity_per_s(self, target: Target) -> float:
        """What can be kept at most: batches of the best length, and nothing shed to scan."""
        return uniform_rate_per_s(math.inf, target, self.fixed_s, self.kept_s)

    def best_kept_per_s(self, rate_per_s: float, target: Target) -> float:
        """What the uniform oracle keeps."""
        return uniform_rate_per_s(rate_per_s, target, *self._costs)

    def bound_per_s(self, rate_per_s: float, target: Target) -> float:
        """No shedder keeps more."""
        return bound_rate_per_s(rate_per_s, target, *self._costs)

    @property
    def scan_share(self) -> float:
        """s over c: a machine that becomes slower makes both dearer."""
        return self.scanned_s / self.kept_s

    @property
    def _costs(self) -> tuple[float, float, float]:
        return self.fixed_s, self.kept_s, self.scanned_s


def efficiency(
    samples: Sequence[Sample],
    around: Sequence[tuple[Calibration, Calibration]],
    rate_per_s: float,
    target: Target,
) -> dict[str, Any]:
    """What the runs kept over what the uniform oracle would have kept in the same time.

    Each run is compared with the mean of the calibrations right before and right after it. Above
    what the better of the two allows as a bound, something was measured wrongly.
    """
    best = [float(np.mean([c.best_kept_per_s(rate_per_s, target) for c in two])) for two in around]
    bound = [max(c.bound_per_s(rate_per_s, target) for c in two) for two in around]
    kept = sum(s.kept_tuples for s in samples)
    lengths_s = [max(s.length_s, 1e-9) for s in samples]  # nothing delivered: no length
    possible = min(best) > 0.0  # else o was measured longer than the best batch
    return {
        "efficiency": kept / float(np.dot(best, lengths_s)) if possible else None,
        "efficiency_by_run": [
            s.goodput_per_s / per_s if per_s > 0.0 else None
            for s, per_s in zip(samples, best, strict=True)
        ],
        "bound_ratio": kept / float(np.dot(bound, lengths_s)) if min(bound) > 0.0 else None,
        "calibrations": [asdict(c) for c in (around[0][0], *(after for _, after in around))],
    }


def calibrate_warm(bench: Bench, shape: Shape, target: Target) -> Calibration:
    """Calibrates at the batch size of `target` until the JVM has stopped getting faster.

    Its compiler goes on for minutes: a query's c falls by a quarter after the first one. The
    gate's own path is warmed up too. Long batches hide o in their noise: it is measured between
    short ones, where it is half of the time.
    """
    warm = bench.start(gate(rate=str(WARM_RATE_PER_S), delay=f"{target.delay_s}s"), shape)
    warm.for_seconds(WARM_S)
    warm.stop()
    tuples, kept_s = FIRST_GUESS_TUPLES, 0.0
    for turn in range(1 + WARM_TURNS):
        machine = _calibrate(bench, shape, tuples, batches=6, warm=40 if turn == 0 else 6)
        tuples = max(1000, round(machine.capacity_per_s(target) * uniform_length_s(target)))
        if turn > 0 and machine.kept_s > SETTLED * kept_s:
            break
        kept_s = machine.kept_s
    short = _calibrate(bench, shape, round(SHORT_S / machine.kept_s), batches=SHORT_BATCHES, warm=6)
    scanned_s = _scanned_s(bench, shape, round(SCAN_SHARE * tuples))
    return replace(machine.with_fixed(short.fixed_s, tuples), scanned_s=scanned_s)


def _calibrate(bench: Bench, shape: Shape, tuples: int, *, batches: int, warm: int) -> Calibration:
    fixed_s, kept_s = _fixed_and_kept_s(bench, shape, tuples, batches, warm)
    return Calibration(fixed_s=fixed_s, kept_s=kept_s, scanned_s=0.0)


def _scanned_s(bench: Bench, shape: Shape, kept: int) -> float:
    sizes = [kept, round(kept * PPM / SCAN_PPM)]
    whole_s, thinned_s = _mean_durations(bench, shape, sizes, SCAN_BATCHES, 6, (PPM, SCAN_PPM))
    return max(0.0, thinned_s - whole_s) / (sizes[1] - sizes[0])


def _fixed_and_kept_s(
    bench: Bench, shape: Shape, tuples: int, batches: int, warm: int
) -> tuple[float, float]:
    """Least squares over the mean times of batches of 0.5, 1 and 1.5 times `tuples`.

    Means, not medians: slow moments meet an oracle too.
    """
    sizes = [max(1, round(share * tuples)) for share in SHARES]
    return fitted(sizes, _mean_durations(bench, shape, sizes, batches, warm, (PPM,)))


def fitted(tuples: Sequence[float], durations_s: Sequence[float]) -> tuple[float, float]:
    """o and c; where noise is larger than the differences, all of it goes to the tuples."""
    c, o = np.polyfit(tuples, durations_s, 1)
    if c <= 0.0 or o < 0.0:
        return 0.0, float(np.mean(durations_s)) / float(np.mean(tuples))
    return float(o), float(c)


def _mean_durations(
    bench: Bench,
    shape: Shape,
    sizes: list[int],
    batches: int,
    warm: int,
    shares_ppm: tuple[int, ...],
) -> list[float]:
    """Sizes take turns, so that drift falls on all of them alike."""
    rows = plain(
        batch=",".join(map(str, sizes)),
        keep_ppm=",".join(map(str, shares_ppm)),
        rate=str(min(max(sizes), MOST_PER_S)),  # a batch spans some seconds of event time
        start="0",
    )
    run = bench.start(rows, shape)
    seen = run.for_batches(warm + batches * len(sizes))
    run.stop()
    durations: dict[int, list[float]] = {i: [] for i in range(len(sizes))}
    for batch in seen[warm:]:
        durations[batch.batch_id % len(sizes)].append(batch.duration_s)
    return [float(np.mean(durations[i])) for i in range(len(sizes))]
