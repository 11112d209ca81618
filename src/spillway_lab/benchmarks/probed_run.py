"""One load manager under constant overload, measured against probes between its batches."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import nnls

from spillway.gate.offsets import decode
from spillway.gate.sampling import count_kept
from spillway.hosts.spark.driver.progress import BatchProgress, delivered
from spillway.model import Target
from spillway_lab.benchmarks.calibration import SHARES, Calibration
from spillway_lab.benchmarks.overload_run import Sample
from spillway_lab.benchmarks.probed_gate import LIKE, ProbedRows, probed
from spillway_lab.benchmarks.spark_runs import Bench, Shape, Source

RESAMPLED = 400


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One batch, the gate's or a probe, from its planning until the next one's."""

    probe: str | None
    kept: int
    scanned: int
    took_s: float


Round = tuple[Turn, ...]  # every probe once, each after a batch of the gate


@dataclass(frozen=True, kw_only=True)
class ProbedSample:
    """What a gate delivered while probes measured the machine between its batches."""

    sample: Sample
    rounds: tuple[Round, ...]

    def efficiency(
        self, rate_per_s: float, target: Target, scan_share: float, seed: int
    ) -> dict[str, Any]:
        """Kept over what the uniform oracle keeps on a machine that costs what the probes cost.

        `scan_share` is s over c. It is a thousandth or so, which probes of the gate's own kind
        cannot tell from noise: it has to be measured beforehand.
        """
        if not self.rounds:
            return {"efficiency": None, "bound_ratio": None}
        machine = fitted_probes(self.rounds, scan_share)
        picked = np.random.default_rng(seed).integers(
            0, len(self.rounds), (RESAMPLED, len(self.rounds))
        )
        tried = [
            share_kept([self.rounds[i] for i in some], rate_per_s, target, scan_share)
            for some in picked
        ]
        found = [share for share in tried if share is not None]
        low, high = np.quantile(found, (0.025, 0.975)) if found else (None, None)
        return {
            "efficiency": share_kept(self.rounds, rate_per_s, target, scan_share),
            "efficiency_low": low,
            "efficiency_high": high,
            "bound_ratio": _share(
                self.rounds, machine, lambda m: m.bound_per_s(rate_per_s, target)
            ),
            "batch_time_of_bare": _of_bare(self.rounds),
            "calibration": asdict(machine),
        }


def probes_for(tuples: int) -> str:
    """0.5, 1 and 1.5 times the batch of a case, and one that scans and keeps as the gate did."""
    return ",".join([*(str(max(1, round(share * tuples))) for share in SHARES), LIKE])


def probing(gate: Source, probes: str, settle_s: float = 0.0) -> Source:
    """The same gate, with probes between its batches after `settle_s`."""
    options = {**gate.options, "probes": probes, "settle": repr(settle_s)}
    return Source(format=ProbedRows.name(), options=options)


def probed_sample(
    bench: Bench, gate: Source, shape: Shape, probes: str, spans_s: tuple[float, float]
) -> ProbedSample:
    """`spans_s`: how long to settle without probes, how long to measure, probes included."""
    settle_s, measured_s = spans_s
    run = bench.start(probing(gate, probes, settle_s), shape)
    run.for_batches(3)
    run.for_seconds(settle_s + measured_s)
    batches = run.batches
    run.stop()
    return read_turns(batches, probes.split(","))


def read_turns(batches: Sequence[BatchProgress], probes: Sequence[str]) -> ProbedSample:
    """From the first probe on, and up to the last batch whose successor was asked for."""
    asked = [_offsets(batch) for batch in batches]
    first = next((i for i, (_, end) in enumerate(asked) if end["probe"]), len(asked)) + 1
    seen, turns = [], []
    for batch, (start, end), (_, after) in zip(
        batches[first:], asked[first:], asked[first + 1 :], strict=False
    ):
        took_s = (after["asked_us"] - end["asked_us"]) / 1e6
        gate = json.loads(end["gate"])
        if end["probe"]:
            probe = probes[end["turn"] % len(probes)]
            lower, upper, rule = probed(gate, probe)
            kept = count_kept(lower, upper, rule)
            turns.append(Turn(probe=probe, kept=kept, scanned=upper - lower, took_s=took_s))
        else:
            own = decode(gate)
            kept, scanned = own.kept_tuples(), own.scanned_tuples
            turns.append(Turn(probe=None, kept=kept, scanned=scanned, took_s=took_s))
            seen += delivered(_without_probes(batch, start, end))
    length_s = sum(turn.took_s for turn in turns if turn.probe is None)
    each = 2 * len(probes)
    rounds = tuple(tuple(turns[i : i + each]) for i in range(0, len(turns) - each + 1, each))
    return ProbedSample(sample=Sample(batches=seen, length_s=length_s), rounds=rounds)


def fitted_probes(rounds: Sequence[Round], scan_share: float) -> Calibration:
    """o and c by least squares, none below zero, from the probes that were kept whole.

    Means, not medians: slow moments meet an oracle too.
    """
    whole = [turn for turns in rounds for turn in _whole(turns)]
    work = np.array([(1.0, turn.kept + scan_share * turn.scanned) for turn in whole])
    scale = work.max(axis=0)
    solved, _ = nnls(work / scale, np.array([turn.took_s for turn in whole]))
    fixed_s, kept_s = (float(value) for value in solved / scale)
    kept_s = max(1e-12, kept_s)
    return Calibration(fixed_s=fixed_s, kept_s=kept_s, scanned_s=scan_share * kept_s)


def share_kept(
    rounds: Sequence[Round], rate_per_s: float, target: Target, scan_share: float
) -> float | None:
    """None when the oracle keeps nothing: o was measured longer than the best batch."""
    machine = fitted_probes(rounds, scan_share)
    return _share(rounds, machine, lambda m: m.best_kept_per_s(rate_per_s, target))


def _share(
    rounds: Sequence[Round], machine: Calibration, possible_per_s: Callable[[Calibration], float]
) -> float | None:
    """What the gate kept, over what was possible in the same time at each round's own speed.

    One mean speed for all rounds would ask too little: a fast minute wins more than a slow one
    loses.
    """
    kept, possible = 0, 0.0
    for turns in rounds:
        whole = _whole(turns)
        said_s = sum(machine.batch_s(turn.kept, turn.scanned) for turn in whole)
        slowness = sum(turn.took_s for turn in whole) / said_s
        kept += sum(turn.kept for turn in turns if not turn.probe)
        own_s = sum(turn.took_s for turn in turns if not turn.probe)
        possible += possible_per_s(machine.slower(slowness)) * own_s
    return kept / possible if possible > 0.0 else None


def _whole(turns: Round) -> list[Turn]:
    """The probes that kept all they read."""
    return [turn for turn in turns if turn.probe not in (None, LIKE)]


def _of_bare(rounds: Sequence[Round]) -> float | None:
    """The gate's batches over the probes right after them that did the same work."""
    pairs = [(a, b) for turns in rounds for a, b in pairwise(turns) if b.probe == LIKE]
    return sum(a.took_s for a, _ in pairs) / sum(b.took_s for _, b in pairs) if pairs else None


def _without_probes(
    batch: BatchProgress, start: Mapping[str, Any], end: Mapping[str, Any]
) -> BatchProgress:
    """As the gate's clock saw it."""
    own = {"startOffset": json.loads(start["gate"]), "endOffset": json.loads(end["gate"])}
    started_s = batch.started_s - end["stopped_us"] / 1e6
    return replace(batch, started_s=started_s, sources=(own,))


def _offsets(batch: BatchProgress) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the batch starts and ends."""
    start, end = (batch.sources[0][key] for key in ("startOffset", "endOffset"))
    return _read(start), _read(end)


def _read(offset: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offset) if isinstance(offset, str) else offset
    return found
