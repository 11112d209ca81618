"""One load manager for all classes: it sees the whole, and decides for all alike."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from spillway.model import Decision, Measurement
from spillway.ports import Cadence, LoadManager
from spillway_lab.engine.classes import ClassPlant


class CommonPlant(ClassPlant):
    """The same plant as one load manager for all classes sees it: one measurement of the whole.

    Loads and counts are summed up; delay and target are those of the class that is worst off.
    """

    def observe(self) -> Iterator[Measurement]:
        measured = list(super().observe())
        whole = _whole(measured)
        return iter([replace(whole, class_name=m.class_name) for m in measured])


class CommonManager:
    """One load manager that decides once a period, for all classes alike."""

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = True

    def __init__(self, law: LoadManager) -> None:
        self._law = law
        self._time_s = -1.0
        self._decision: Decision | None = None

    def decide(self, measurement: Measurement) -> Decision:
        if self._decision is None or measurement.time_s != self._time_s:
            self._time_s, self._decision = measurement.time_s, self._law.decide(measurement)
        return self._decision


def _whole(measured: list[Measurement]) -> Measurement:
    worst = max(measured, key=lambda m: (m.delay_s or 0.0) / m.target.delay_s)
    summed = (
        "offered_tuples",
        "admitted_tuples",
        "shed_tuples",
        "completed_tuples",
        "queued_tuples",
        "queued_load_s",
        "offered_load",
        "admitted_load",
        "busy_s",
    )
    sums: dict[str, Any] = {name: sum(getattr(m, name) for m in measured) for name in summed}
    offered = sum(m.offered_tuples * m.cost_s for m in measured)
    sums["cost_s"] = offered / max(1, sums["offered_tuples"])
    return replace(worst, headroom=None, **sums)
