"""The nodes as the leader holds with them, pure: one life a name, and which lives are over."""

from collections.abc import Iterable, Mapping

from spillway.coding import from_json
from spillway.hosts.cluster.assigning import lives_over
from spillway.hosts.cluster.leases import Sightings
from spillway.hosts.cluster.messages import NODE, NodeOrder, NodeReport
from spillway.hosts.cluster.records import Entries, Placed


class Roster:
    """What one leader has read of the nodes. Times are of its own monotonic clock."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._sightings = Sightings()
        self._read_s: float | None = None
        self._superseded: set[str] = set()
        self.reports: dict[str, NodeReport] = {}  # by name: of the life that holds the name
        self.over: frozenset[str] = frozenset()

    def read(self, entries: Entries, began_s: float, read_s: float, held: Iterable[str]) -> None:
        """A reading of the reports from `began_s` to `read_s`; `held`: lives that hold queries."""
        for placed in entries.placed:
            if placed.record.body is None:
                self.reports.pop(placed.record.key.removeprefix(NODE), None)
            elif (report := _report(placed)) is not None:
                self._sightings.read(report.life, placed.position, report.lease_s, read_s)
                if report.life not in self._superseded:
                    self.reports[placed.record.key.removeprefix(NODE)] = report
        blind_s = began_s - (self._read_s if self._read_s is not None else began_s)
        if entries.whole or blind_s > self._lease_s:
            self._sightings.refresh(read_s)
        self._read_s = read_s
        lives = set(held)
        for life in lives:
            self._sightings.assume(life, self._lease_s, read_s)
        self._sightings.forget_all_but(lives | {report.life for report in self.reports.values()})
        self.over = lives_over(
            self.reports, lambda life: self._sightings.is_over(life, began_s), lives
        )

    def accepted(self, orders: Mapping[str, NodeOrder]) -> Iterable[tuple[str, str]]:
        """Names that another life holds now than the orders say. Of two processes that go by one
        name the newer one has it; the older one reads that, and ends."""
        for name, report in self.reports.items():
            known = orders[name].life if name in orders else None
            if known == report.life or (name not in orders and report.life in self.over):
                continue
            if known is not None and known not in report.before:
                self._superseded.add(known)
            yield name, report.life


def _report(placed: Placed) -> NodeReport | None:
    if not placed.record.key.startswith(NODE):
        return None
    return from_json(NodeReport, placed.record.body or {})
