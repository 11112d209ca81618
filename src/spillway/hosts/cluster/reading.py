"""A cluster's control log as one reader knows it: nothing is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from spillway.coding import from_json
from spillway.flow.flow import ServiceClass
from spillway.hosts.cluster.bodies import ASSIGNMENTS, REPORTS
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.messages import (
    LEADER,
    NODE,
    Assignment,
    Leadership,
    NodeOrder,
    NodeReport,
)
from spillway.hosts.cluster.opening import Place

_NOBODY = Leadership(leader="", lease_s=0.0)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A report that is new, by the reader's own clock."""

    node: str
    report: NodeReport
    at_s: float
    since_s: float | None  # when the one before it was read


class Reading:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._reports, self._assignments = (
            Latest(place.reports(), REPORTS),
            Latest(place.assignments(), ASSIGNMENTS),
        )
        self._at: dict[str, int] = {}  # node -> position of its last report
        self.said: dict[str, NodeReport] = {}  # last, by node
        self.heard_s: dict[str, float] = {}  # node -> when that was read
        self.orders: Mapping[str, NodeOrder] = {}
        self.queries: Mapping[str, Assignment] = {}  # without those that were taken out
        self.classes: Mapping[str, ServiceClass] = place.flow.classes  # as they are now
        self.reports: Mapping[str, NodeReport] = {}  # of the lives that the leader holds with
        self.leadership, self.led_at, self.epoch = _NOBODY, -1, 0

    def read_on(self, now_s: float) -> list[Heard]:
        """What nodes have said since."""
        self._reports.read_on()
        self._assignments.read_on()
        found = self._read_reports(now_s)
        draft = Draft(self._assignments, self._place.name, "reader")
        self.orders = orders = draft.orders
        self.queries = {n: q for n, q in draft.queries.items() if q.state != "ended"}
        if (flow := draft.flow) is not None:
            given = flow.flow["classes"]
            self.classes = {n: ServiceClass.model_validate(c) for n, c in given.items()}
        self.reports = {
            name: report
            for name, report in self.said.items()
            if name in orders and orders[name].life == report.life
        }
        if (placed := self._assignments.by_key.get(LEADER)) is not None:
            self.leadership = from_json(Leadership, placed.record.body or {})
            self.led_at, self.epoch = placed.position, placed.record.epoch
        return found

    def _read_reports(self, now_s: float) -> list[Heard]:
        placed, found = self._reports.of(NODE), []
        self.said = {name: report for name, report in self.said.items() if name in placed}
        for name, each in placed.items():
            if self._at.get(name) != each.position:
                self._at[name] = each.position
                report = self.said[name] = from_json(NodeReport, each.record.body or {})
                since_s, self.heard_s[name] = self.heard_s.get(name), now_s
                found.append(Heard(node=name, report=report, at_s=now_s, since_s=since_s))
        return found
