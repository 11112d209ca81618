"""A node's part in shedding for others: it holds its table and looks up what its gates may keep.

At every control period, alone. A table that has outlived its leader is not used: costs may have
moved, and nobody would say so.

What other nodes send comes in lumps, a batch at a time, and they have shed for this one already. So
its rate is averaged over many batches, and only what is clearly too much is shed here by the table;
the rest is left to the gates' own law, which sees what waits.
"""

import time
from collections.abc import Callable, Mapping

from spillway.errors import SpillwayError
from spillway.hosts.cluster.duties import Duties, names_of
from spillway.hosts.cluster.table_records import Table, TableGiven, keep_of, table_of
from spillway.hosts.spark.driver.application import Application
from spillway.model import parse_duration_s

LUMPS_S = 20.0  # over which rates of what other nodes send are averaged
CLEARLY = 1.1  # times what the table has room for


class LookingUp:
    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._given: TableGiven | None = None
        self._table: Table | None = None
        self._led_at, self._led_s = -1, float("-inf")
        self._due_s = self._looked_s = float("-inf")
        self._averages: dict[str, float] = {}  # of inputs that other nodes send
        self._said = ""

    def look(self, duties: Duties, application: Application) -> None:
        """Once a control period; what was found holds until the next look."""
        now_s = self._elapsed()
        if now_s < self._due_s:
            return
        self._due_s = now_s + parse_duration_s(application.flow.control.period)
        names = names_of(duties.queries)
        found = self.next(duties, _rates(application, names), now_s)
        kept = {run: found[name] for run, name in names.items() if name in found}
        application.dispatcher.change(lambda control: control.keep_at_most(kept))
        if (said := self._state(now_s)) != self._said:
            self._said = said
            application.event("tables", said=said)

    def next(self, duties: Duties, rates: Mapping[str, float], now_s: float) -> dict[str, float]:
        """What each query may keep from now on, by what the leader says and by these rates."""
        self._hold(duties, now_s)
        return self.found(rates, now_s)

    def _hold(self, duties: Duties, now_s: float) -> None:
        if duties.led_at != self._led_at:
            self._led_at, self._led_s = duties.led_at, now_s
        if duties.table is self._given:
            return
        self._given, self._table = duties.table, None
        if self._given is not None:
            try:
                self._table = table_of(self._given)
            except SpillwayError:
                self._table = None  # as good as none: each sheds for itself

    def is_stale(self, now_s: float) -> bool:
        return self._given is not None and now_s - self._led_s > self._given.ttl_s

    def found(self, rates: Mapping[str, float], now_s: float) -> dict[str, float]:
        """What each query may keep of what it is offered; empty: each sheds for itself."""
        if self._given is None or self._table is None or self.is_stale(now_s):
            self._averages.clear()
            return {}
        elapsed_s = now_s - self._looked_s if self._averages else 0.0
        share = min(1.0, elapsed_s / LUMPS_S)
        self._looked_s = now_s
        seen = dict(rates)
        for name in self._given.fed:
            before = self._averages.get(name, 0.0)  # with a first table: nothing is too much yet
            self._averages[name] = before + share * (rates.get(name, 0.0) - before)
            seen[name] = self._averages[name] / CLEARLY
        return keep_of(self._table, seen)

    def _state(self, now_s: float) -> str:
        if self._table is None:
            return "none: sheds for itself"
        if self.is_stale(now_s):
            return "no leader for too long: sheds for itself"
        return f"sheds by a table of {len(self._table.scores)} rows"


def _rates(application: Application, names: Mapping[str, str]) -> dict[str, float]:
    """Offered, by query."""
    found: dict[str, float] = {}
    for class_name in application.classes:
        for run, load in application.dispatcher.loads(class_name).items():
            if run in names:
                found[names[run]] = load.rate_per_s
    return found
