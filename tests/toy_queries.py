"""Queries in virtual time: gates over toy logs, in processes that start cold, stop and are killed.

A test says what a machine takes for a batch and what happens to the query; what was shed, and
what still waits, is read from the last offsets.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from spillway.clock import ManualClock
from spillway.gate.offsets import SENTINEL, Offset, decode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.model import Order, Report, Target
from spillway.testing import ToyLog, ToySpark

BEGIN_S = 1000.0  # when a toy log's first tuple arrives

Curve = Callable[[float], float]  # times slower, over a time in seconds


def even(_: float) -> float:
    return 1.0


def warming(times_slower: float, for_s: float) -> Curve:
    """A JVM that is so many times slower at first and warm (within 5 %) after so long."""
    return lambda age_s: 1.0 + (times_slower - 1.0) * exp(-3.0 * age_s / for_s)


@dataclass(kw_only=True)
class Machine:
    """What a batch takes: o + c n + s m, times what slows it down."""

    fixed_s: float
    kept_s: float
    scanned_s: float = 0.0
    noise: float = 0.0
    cold: Curve = even  # of the age of the JVM
    crowded: Curve = even  # of the time: others hold the machine
    seed: int = 5

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def batch_s(self, kept: int, scanned: int, age_s: float, time_s: float) -> float:
        even_s = self.fixed_s + self.kept_s * kept + self.scanned_s * scanned
        slower = self.cold(age_s) * self.crowded(time_s)
        return float(even_s * slower * np.exp(self.noise * self._rng.standard_normal()))


@dataclass(frozen=True, kw_only=True)
class Done:
    """A batch that has ended: the parts of all gates together."""

    ended_s: float  # since the stream began
    offered: int
    kept: int
    delay_s: float  # mean over what was kept


@dataclass(kw_only=True)
class ToyQuery:
    """One query; its gates (one a log) decide as one. `run` until a time, `stop`, go on."""

    machine: Machine
    logs: dict[str, ToyLog]
    folder: Path
    options: dict[str, str] = field(default_factory=lambda: {"delay": "2s"})
    trigger_s: float | None = None  # Spark's own interval, not the option
    turn: Callable[[float], bool] | None = None  # what a driver answers at that time
    clock: ManualClock = field(default_factory=lambda: ManualClock(BEGIN_S))
    done: list[Done] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._logged: dict[str, list[dict[str, Any]]] = {name: [] for name in self.logs}
        self._starts = self._commits = 0
        self._pause_s = 0.0
        self._begin()

    @property
    def now_s(self) -> float:
        """Since the stream began."""
        return self.clock.now_s() - BEGIN_S

    def run(self, until_s: float) -> None:
        with toy_logs(self.logs):
            while self.now_s < until_s:
                self._trigger()

    def stop(self, for_s: float) -> None:
        """Stopped between two batches, and started in a new process after so long."""
        self.clock.advance(for_s)
        self._begin()

    def kill(self, for_s: float) -> None:
        """Killed within a batch: the new process runs it again, as it was logged."""
        with toy_logs(self.logs):
            ran = self._plan()
            self.clock.advance(for_s)
            self._begin()
            for name in ran:
                before = self._logged[name][-2] if len(self._logged[name]) > 1 else dict(SENTINEL)
                self._gates[name].planner.shown(before, self._logged[name][-1])
            self._run(ran)

    def pause(self, for_s: float) -> None:
        """The whole machine stands still within the next batch."""
        self._pause_s += for_s

    @property
    def shed(self) -> int:
        return sum(decode(logged[-1]).totals.shed for logged in self._logged.values() if logged)

    @property
    def waits_s(self) -> float:
        """How old the oldest tuple is that no batch has taken."""
        now_s, ages_s = self.clock.now_s(), [0.0]
        for name, log in self.logs.items():
            stops = {s.partition: s.stop for s in decode(self._logged[name][-1]).stretches}
            for span in log.extent(now_s):
                if span.stop > stops[span.partition]:
                    ages_s.append(now_s - BEGIN_S - stops[span.partition] / log.rate_per_s)
        return max(ages_s)

    # -- Spark's order of calls

    def _begin(self) -> None:
        self._starts += 1
        self._born_s, folder = self.clock.now_s(), self.folder / str(self._starts)
        folder.mkdir(parents=True)
        self._gates: dict[str, ToySpark] = {}
        for name in self.logs:
            self._gates[name] = ToySpark(self._planner(name, folder), self.clock)
            self.clock.advance(1e-3)  # the one that is made first leads

    def _planner(self, name: str, folder: Path) -> Planner:
        given = {"source": "toy", "path": name, **self.options}
        clock, joint = self.clock, None
        if len(self.logs) > 1:
            given["joint"] = "query"
            joint = Joint(
                "query",
                given,
                open_log=lambda options: self.logs[options["path"]],
                folder=folder,
                member=name,
                elapsed=clock.now_s,
            )
        around = Around(
            clock=clock,
            elapsed=clock.now_s,
            sleep=clock.advance,
            joint=joint,
            ask=None if self.turn is None else self._answer,
        )
        return Planner(given, GateOptions.parse(given), around=around)

    def _answer(self, report: Report) -> Order:
        assert self.turn is not None
        return Order(target=Target.parse(self.options["delay"]), may_start=self.turn(self.now_s))

    def _trigger(self) -> None:
        self._run(self._plan())
        if self.trigger_s is not None:
            self._commit()
            self.clock.advance(self.trigger_s - self.clock.now_s() % self.trigger_s + 0.01)

    def _plan(self) -> dict[str, Offset]:
        """All gates are asked, then the batch is logged and shown."""
        starts = {n: at[-1] if at else dict(SENTINEL) for n, at in self._logged.items()}
        ends = {name: gate.planner.latest(starts[name]) for name, gate in self._gates.items()}
        new = {name: end for name, end in ends.items() if end != starts[name]}
        for name, end in new.items():
            if self._logged[name]:
                self._gates[name].planner.completed(starts[name])
            self._gates[name].planner.shown(starts[name], end)
            self._logged[name].append(end)
        return {name: decode(end) for name, end in new.items()}

    def _run(self, batch: dict[str, Offset]) -> None:
        """Nothing new is no batch: the poll took its time."""
        if not batch:
            return
        kept = sum(offset.kept_tuples() for offset in batch.values())
        scanned = sum(offset.scanned_tuples for offset in batch.values())
        age_s = self.clock.now_s() - self._born_s
        self.clock.advance(self.machine.batch_s(kept, scanned, age_s, self.now_s) + self._pause_s)
        self._pause_s = 0.0
        arrived = [(o.arrived.mean_us, o.kept_tuples()) for o in batch.values() if o.arrived]
        if kept:
            mean_s = sum(at_us * n for at_us, n in arrived) / 1e6 / sum(n for _, n in arrived)
            offered = sum(offset.offered_tuples for offset in batch.values())
            delay_s = self.clock.now_s() - mean_s
            done = Done(ended_s=self.now_s, offered=offered, kept=kept, delay_s=delay_s)
            self.done.append(done)

    def _commit(self) -> None:
        """As Spark's commit log would show it to a gate that knows the checkpoint."""
        folder = self.folder / "checkpoint" / "commits"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / str(self._commits)
        file.touch()
        os.utime(file, (self.clock.now_s(), self.clock.now_s()))
        self._commits += 1


@contextmanager
def toy_logs(logs: dict[str, ToyLog]) -> Iterator[None]:
    """Logs are opened by their option `path`."""
    with (
        patch.object(catalog, "open_log", lambda options, schema=None: logs[options["path"]]),
        patch.object(catalog, "pinned", lambda options, now_s: dict(options)),
    ):
        yield
