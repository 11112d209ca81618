"""The driver's part of the control path, every period, in a thread of its own."""

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING

from spillway.classes.turns import batches_in_flight
from spillway.hosts.spark.driver.conditions import Conditions
from spillway.hosts.spark.driver.executors import live_cores
from spillway.model import parse_duration_s

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application


class ControlLoop:
    """Quotas and turns follow what the gates report, and the cores that there are."""

    def __init__(self, application: "Application", conditions: Conditions, *, cores: int) -> None:
        self._application, self._conditions, self._cores = application, conditions, cores
        self._thread = threading.Thread(target=self._run, name="spillway-loop", daemon=True)
        self.looked_s: float | None = None  # when it last looked at the classes

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        application = self._application
        period_s = parse_duration_s(application.flow.control.period)
        while not application.queries.stopping.wait(period_s):
            try:
                self._look_at_classes()
            except Exception as error:  # quotas must not freeze for one look that failed
                application.event("failed", error=repr(error))

    def _look_at_classes(self) -> None:
        self._follow_cores()
        application = self._application
        turns = application.dispatcher.control.turns
        withheld = turns.withheld
        decided = application.dispatcher.period_ended()
        if turns.withheld != withheld:
            application.event("room", withheld_slots=turns.withheld)
        self._conditions.look(*application.seen())
        for name, new in decided.items():
            application.event("quota", class_name=name, **asdict(new))
        self.looked_s = application.now_s()

    def _follow_cores(self) -> None:
        """Executors come and go: slots, quotas and tasks follow the cores that there are."""
        application = self._application
        cores = live_cores(application.spark.sparkContext)
        if cores == self._cores:
            return
        self._cores = cores
        slots = batches_in_flight(cores, [c.priority for c in application.classes.values()])
        application.dispatcher.change(lambda control: control.resize(slots, float(cores)))
        application.dispatcher.parallelism = application.gates.tasks_of_a_batch()
        application.event("cores", cores=cores)
