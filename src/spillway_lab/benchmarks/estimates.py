"""`estimates`: do the bounds of estimates hold what they promise, and what does stratifying gain?

Every trial is a stream of skewed groups with long-tailed values, thinned by the gate's own
shedders; truth is known. Streams differ in skew, and in every third one a single group is 90 % of
all tuples. Distinct values have trials of their own (estimates_keys).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.estimates.numbers import Bounded, estimates, sums
from spillway.gate.rules import share_of
from spillway.gate.sampling import PPM, UniformRule, kept_positions
from spillway.gate.shedders.strata import Strata
from spillway.report import Table
from spillway_lab.benchmarks.estimates_keys import Keyed, estimated_keys
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

CONFIDENCE = 0.95
ALLOWED = (0.93, 0.97)
KEEP_FRACTIONS = (0.8, 0.6, 0.4, 0.3, 0.2, 0.1)
TRIALS = 2_000  # of every keep fraction
OTHERS_EVERY = 4  # trials in which the same stream is also thinned by strata, and by onset
TRIALS_A_STREAM = 40
TUPLES, GROUPS = 12_000, 30
AGGREGATES = ("count", "sum", "avg")
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Population:
    group: Places
    value: Floats
    truth: dict[str, Floats]

    @classmethod
    def draw(cls, rng: np.random.Generator, *, head: bool) -> "Population":
        shares = np.arange(1, GROUPS + 1) ** -rng.uniform(0.8, 1.6)
        if head:
            shares[0] = 9.0 * shares[1:].sum()
        group = rng.choice(GROUPS, TUPLES, p=shares / shares.sum())
        value = rng.lognormal(0.0, 0.7, TUPLES) * rng.uniform(0.5, 5.0, GROUPS)[group]
        count = np.bincount(group, minlength=GROUPS).astype(np.float64)
        total = np.bincount(group, weights=value, minlength=GROUPS).astype(np.float64)
        average = total / np.maximum(1.0, count)
        return cls(group=group, value=value, truth={"count": count, "sum": total, "avg": average})


Sample = tuple[Places, Floats]  # kept places and their weights


def _uniform(stream: Population, fraction: float, seed: int) -> Sample:
    start = seed * 7_919  # blocks begin anywhere in a stream
    rule = UniformRule(keep_ppm=round(fraction * PPM), seed=seed)
    kept = kept_positions(start, start + TUPLES, rule) - start
    return kept, np.full(len(kept), PPM / rule.keep_ppm)


def _strata(stream: Population, fraction: float, seed: int) -> Sample:
    share = share_of(0, TUPLES, round(fraction * PPM))
    rows = pa.table({"group": stream.group})
    kept = Strata(column="group").keep(rows, share=share, seed=seed, block=0)
    return np.flatnonzero(kept.mask), kept.weights


def _onset(stream: Population, fraction: float, seed: int) -> Sample:
    """Uniform shedding that begins somewhere in the second half of the window."""
    begins = TUPLES * (50 + seed % 46) // 100
    kept, _ = _uniform(stream, fraction, seed)
    thinned = kept[kept >= begins]
    weight = (TUPLES - begins) / max(1, len(thinned))
    places = np.concatenate([np.arange(begins), thinned])
    return places, np.where(places < begins, 1.0, weight)


SHEDDERS: dict[str, Callable[[Population, float, int], Sample]] = {
    "uniform": _uniform,
    "strata": _strata,
    "onset": _onset,
}


class Tally:
    """What the trials of one shedder at one keep fraction came to."""

    def __init__(self) -> None:
        self.trials = 0
        self.vanished = 0
        self.groups = 0
        self.bounded: Counter[str] = Counter()
        self.covered: Counter[str] = Counter()
        self.errors: defaultdict[str, list[float]] = defaultdict(list)
        self.biases: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, stream: Population, sample: Sample) -> None:
        kept, weights = sample
        found = sums(stream.group[kept], GROUPS, weights, stream.value[kept], kept)
        result = estimates(found, Z)
        there = self._seen(stream.truth["count"], found.kept)
        for aggregate in AGGREGATES:
            self._compare(aggregate, getattr(result, aggregate), stream.truth[aggregate], there)

    def add_keys(self, window: Keyed, found: Bounded, kept: Places) -> None:
        self._compare("distinct", found, window.truth, self._seen(window.truth, kept))

    def _seen(self, truth: Floats, kept: Any) -> npt.NDArray[np.bool]:
        there: npt.NDArray[np.bool] = truth > 0
        self.trials += 1
        self.groups += int(there.sum())
        self.vanished += int((there & (kept == 0)).sum())
        return there

    def _compare(
        self, aggregate: str, found: Bounded, truth: Floats, there: npt.NDArray[np.bool]
    ) -> None:
        bounded = there & ~np.isnan(found.low)
        slack = 1e-9 * np.abs(truth)
        inside = (found.low - slack <= truth) & (truth <= found.high + slack)
        self.bounded[aggregate] += int(bounded.sum())
        self.covered[aggregate] += int((bounded & inside).sum())
        estimate = np.nan_to_num(found.estimate[there])  # a vanished group is a miss of 100 %
        relative = estimate / truth[there] - 1.0
        self.errors[aggregate].append(float(np.mean(np.abs(relative))))
        self.biases[aggregate].append(float(np.mean(relative)))

    def results(self, shedder: str, fraction: float) -> Iterator[dict[str, Any]]:
        for aggregate, errors in self.errors.items():
            bounded = self.bounded[aggregate]
            yield {
                "shedder": shedder,
                "keep_fraction": fraction,
                "aggregate": aggregate,
                "trials": self.trials,
                "groups": self.groups,
                "bounded": bounded,
                "no_bounds": self.groups - self.vanished - bounded,
                "vanished": self.vanished,
                "coverage": self.covered[aggregate] / max(1, bounded),
                "mean_relative_error": float(np.mean(errors)),
                "bias": float(np.mean(self.biases[aggregate])),
                "bias_error": float(np.std(self.biases[aggregate]) / self.trials**0.5),
            }


def run(setup: BenchSetup) -> BenchReport:
    trials = 120 if setup.quick else TRIALS
    rng = np.random.default_rng(setup.seed)
    results: list[dict[str, Any]] = []
    for number, fraction in enumerate(KEEP_FRACTIONS):
        setup.progress(f"keeping {fraction:.0%}", number / len(KEEP_FRACTIONS))
        results += _fraction(fraction, trials, rng)
    return BenchReport(
        results=results,
        tables=(_table(results),),
        details=_details(results),
        failures=tuple(_failures(results, setup.quick)),
    )


def _fraction(fraction: float, trials: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    tallies = {name: Tally() for name in (*SHEDDERS, "key")}
    for trial in range(trials):
        if trial % TRIALS_A_STREAM == 0:
            stream = Population.draw(rng, head=trial // TRIALS_A_STREAM % 3 == 2)
            window = Keyed.draw(rng)
        seed = int(rng.integers(0, 2**31))
        tallies["uniform"].add(stream, _uniform(stream, fraction, seed))
        if trial % OTHERS_EVERY == 0:
            tallies["strata"].add(stream, _strata(stream, fraction, seed))
            tallies["onset"].add(stream, _onset(stream, fraction, seed))
        tallies["key"].add_keys(window, *estimated_keys(window, fraction, seed, rng, Z))
    for name, tally in tallies.items():
        yield from tally.results(name, fraction)


def _details(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The two claims in a few figures."""
    uniform = [r for r in results if r["shedder"] == "uniform"]
    strata = [r for r in results if r["shedder"] == "strata"]
    keys = [r["coverage"] for r in results if r["shedder"] == "key"]
    onset = [r["coverage"] for r in results if r["shedder"] == "onset"]
    found = [r["coverage"] for r in uniform]
    pairs = zip(strata, uniform, strict=True)
    ratios = [s["mean_relative_error"] / u["mean_relative_error"] for s, u in pairs]
    return {
        "confidence": CONFIDENCE,
        "uniform_coverage": {"least": min(found), "most": max(found)},
        "onset_coverage": {"least": min(onset), "most": max(onset)},
        "distinct_coverage": {"least": min(keys), "most": max(keys)},
        "strata_error_over_uniform_error": {"least": min(ratios), "most": max(ratios)},
    }


def _failures(results: list[dict[str, Any]], quick: bool) -> Iterator[str]:
    """Samples must be covered as promised; strata may be covered better, never worse.

    What is called unbiased must be so within four standard errors: an average is not.
    """
    low, high = ALLOWED
    by_case = {(r["shedder"], r["keep_fraction"], r["aggregate"]): r for r in results}
    for (shedder, fraction, aggregate), found in by_case.items():
        case = f"{shedder}, keeping {fraction:.0%}, {aggregate}"
        if quick or shedder == "onset":  # which only says how far it holds
            continue
        if not low <= found["coverage"] <= (1.0 if shedder == "strata" else high):
            yield f"{case}: {found['coverage']:.1%} of the intervals hold the truth"
        if aggregate != "avg" and abs(found["bias"]) > 4.0 * found["bias_error"] + 1e-9:
            yield f"{case}: estimates are {found['bias']:+.2%} off on average"
        if shedder == "strata":
            uniform = by_case["uniform", fraction, aggregate]
            ratio = found["mean_relative_error"] / uniform["mean_relative_error"]
            if ratio > 0.9:
                yield f"{case}: the error is {ratio:.2f} times that of uniform shedding"


def _table(results: list[dict[str, Any]]) -> Table:
    columns = ("shedder", "keeps", "of", "coverage", "error", "bias", "no bounds", "vanished")
    rows = [
        (
            r["shedder"],
            f"{r['keep_fraction']:.0%}",
            r["aggregate"],
            f"{r['coverage']:.1%}",
            f"{r['mean_relative_error']:.1%}",
            f"{r['bias']:+.2%}",
            f"{r['no_bounds'] / r['groups']:.1%}",
            f"{r['vanished'] / r['groups']:.1%}",
        )
        for r in results
    ]
    return Table(title=f"intervals at {CONFIDENCE:.0%}", columns=columns, rows=rows)


BENCHMARKS = (
    Benchmark(name="estimates", title="Coverage and error of estimates after shedding", run=run),
)
