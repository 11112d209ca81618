"""One run in virtual time: plant, load managers, and everything that was measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spillway.errors import SpillwayError, require
from spillway.loop import tick
from spillway.model import Decision, Measurement, Target
from spillway.ports import Journal, LoadManager
from spillway_lab.engine.state import ClassState, Counts
from spillway_lab.engine.statistics import DelayRecord, Floats, Ints, Totals

TargetChange = tuple[float, Target]  # from this second on, for every class


class SimulatedPlant(Protocol):
    """ports.Plant, plus what moves it through virtual time."""

    classes: dict[str, ClassState]

    def begin(self, period_s: float, managers: Mapping[str, LoadManager]) -> None: ...

    def advance(self, until_s: float) -> None: ...

    def observe(self) -> Iterable[Measurement]: ...

    def act(self, measurement: Measurement, decision: Decision) -> None: ...

    def set_target(self, class_name: str, target: Target) -> None: ...

    def counts(self, class_name: str) -> Counts: ...

    def totals(self, class_name: str) -> Totals: ...


@dataclass(frozen=True, kw_only=True)
class Run:
    """One class over one run. Arrays have one value per control period."""

    class_name: str
    period_s: float
    time_s: Floats  # end of the period
    offered: Ints
    admitted: Ints
    shed: Ints
    completed: Ints
    outputs: Ints
    delay_s: Floats  # mean of what completed in the period; NaN when nothing did
    delay_by_arrival_s: Floats  # mean of what arrived in the period and completed in the run
    target_s: Floats
    queued: Ints  # the virtual queue
    queued_load_s: Floats
    keep_fraction: Floats  # in force during the period
    headroom: Floats  # believed by the load manager; NaN when it has none
    cost_s: Floats
    delays: DelayRecord
    totals: Totals

    @property
    def accumulated_violation_s(self) -> float:
        return self.delays.accumulated_violation_s

    @property
    def delayed_tuples(self) -> int:
        return self.delays.delayed_tuples

    @property
    def max_overshoot_s(self) -> float:
        return self.delays.max_overshoot_s

    @property
    def mean_violation_s(self) -> float:
        """Violation averaged over all tuples that completed (the thesis's average)."""
        return self.delays.accumulated_violation_s / max(1, self.delays.tuples)

    @property
    def loss_ratio(self) -> float:
        """Of everything offered to the class, through its streams or by another class."""
        return int(self.shed.sum()) / max(1, int(self.offered.sum()))

    @property
    def mean_delay_s(self) -> float:
        return self.delays.mean_s

    def quantile_s(self, quantile: float) -> float:
        return self.delays.quantile_s(quantile)


def simulate(
    plant: SimulatedPlant,
    managers: Mapping[str, LoadManager] | LoadManager,
    duration_s: float,
    period_s: float,
    *,
    target_changes: Sequence[TargetChange] = (),
    progress: Callable[[float], None] | None = None,
    journal: Journal | None = None,
) -> Run:
    """A run of a plant with a single class."""
    runs = simulate_classes(
        plant,
        managers,
        duration_s,
        period_s,
        target_changes=target_changes,
        progress=progress,
        journal=journal,
    )
    if len(runs) > 1:
        raise SpillwayError(f"the plant has classes {', '.join(runs)}: use simulate_classes")
    return next(iter(runs.values()))


def simulate_classes(
    plant: SimulatedPlant,
    managers: Mapping[str, LoadManager] | LoadManager,
    duration_s: float,
    period_s: float,
    *,
    target_changes: Sequence[TargetChange] = (),
    progress: Callable[[float], None] | None = None,
    journal: Journal | None = None,
) -> dict[str, Run]:
    """Advance the plant by one control period, then tick the loop, until the time is up.

    One load manager serves one class: give a mapping when the plant has several.
    """
    require(duration_s > 0.0, "duration of the run, in seconds,", duration_s, "above zero")
    require(period_s > 0.0, "control period, in seconds,", period_s, "above zero")
    by_class = _by_class(plant, managers)
    plant.begin(period_s, by_class)
    recorders = {name: _Recorder(plant, name) for name in plant.classes}
    changes = sorted(target_changes, key=lambda change: change[0])
    periods = max(1, round(duration_s / period_s))
    for k in range(periods):
        end_s = (k + 1) * period_s
        _change_targets(plant, changes, k * period_s)
        for recorder in recorders.values():
            recorder.period_starts()
        plant.advance(end_s)
        tick(plant, by_class, journal)
        for recorder in recorders.values():
            recorder.period_ended(end_s)
        if progress is not None:
            progress((k + 1) / periods)
    return {name: recorder.run(period_s) for name, recorder in recorders.items()}


def _change_targets(plant: SimulatedPlant, changes: list[TargetChange], now_s: float) -> None:
    """Those that are due, taken off the list."""
    while changes and changes[0][0] <= now_s + 1e-9:
        _, target = changes.pop(0)
        for name in plant.classes:
            plant.set_target(name, target)


def _by_class(
    plant: SimulatedPlant, managers: Mapping[str, LoadManager] | LoadManager
) -> Mapping[str, LoadManager]:
    if not isinstance(managers, Mapping):
        if len(plant.classes) > 1:
            names = ", ".join(plant.classes)
            raise SpillwayError(f"one load manager for classes {names}: give one for each")
        return dict.fromkeys(plant.classes, managers)
    missing = set(plant.classes) - set(managers)
    if missing:
        raise SpillwayError(f"class '{min(missing)}' has no load manager: give one")
    return managers


class _Recorder:
    """Collects the figures of one class, period by period."""

    def __init__(self, plant: SimulatedPlant, name: str) -> None:
        self._plant, self._name = plant, name
        self._state = plant.classes[name]
        self._columns: dict[str, list[float]] = {}
        self._before = Counts()
        self._keep_fraction = 1.0

    def period_starts(self) -> None:
        self._keep_fraction = self._state.keep_fraction

    def period_ended(self, time_s: float) -> None:
        state, counts = self._state, self._plant.counts(self._name)
        new, self._before = counts.since(self._before), counts
        believed = state.decision.headroom if state.decision else None
        row = {
            "time_s": time_s,
            "offered": new.offered,
            "admitted": new.admitted,
            "shed": new.shed,
            "completed": new.completed,
            "outputs": new.outputs,
            "target_s": state.target.delay_s,
            "queued": state.queued_tuples,
            "queued_load_s": state.queued_load_s,
            "keep_fraction": self._keep_fraction,
            "headroom": np.nan if believed is None else believed,
            "cost_s": state.cost_s,
        }
        for name, value in row.items():
            self._columns.setdefault(name, []).append(value)

    def run(self, period_s: float) -> Run:
        floats = {n: np.array(c, dtype=np.float64) for n, c in self._columns.items()}
        whole = ("offered", "admitted", "shed", "completed", "outputs", "queued")
        columns: dict[str, Any] = dict(floats)
        columns.update({name: floats[name].astype(np.int64) for name in whole})
        delays, periods = self._state.delays, floats["time_s"].size
        return Run(
            class_name=self._name,
            period_s=period_s,
            delay_s=delays.by_completion.means(periods),
            delay_by_arrival_s=delays.by_arrival.means(periods),
            delays=delays,
            totals=self._plant.totals(self._name),
            **columns,
        )
