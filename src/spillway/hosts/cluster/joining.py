"""An application that has attached to a cluster: its queries are its own, its classes are not.

It reports as a node does and is told what holds of classes. Nothing is given to it and nothing is
taken away, so its gates need no lease: where nobody leads, or the control log is away, they go on
with what they were told last.
"""

import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from spillway.coding import to_json
from spillway.errors import SpillwayError
from spillway.hosts.cluster.bodies import ASSIGNMENTS
from spillway.hosts.cluster.class_orders import ClassOrders
from spillway.hosts.cluster.control_log import AwayError, Latest
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.leases import NodeLease
from spillway.hosts.cluster.messages import NODE, NodeReport, NodeState
from spillway.hosts.cluster.node_view import told, views
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.records import Record
from spillway.hosts.spark.driver.application import Application
from spillway.model import parse_duration_s

_BEATS = 5  # in a lease
_END_S = 10.0  # for the last word
Say = Callable[[str], None]


class Joined:
    """From `start` to `leave`; what goes wrong in between is said, and stops no query."""

    def __init__(self, name: str, place: Place, application: Application, say: Say) -> None:
        self._name, self._cluster, self._application = name, place.name, application
        self._reports = place.reports()
        self._assignments = Latest(place.assignments(), ASSIGNMENTS)
        lease_s = parse_duration_s(place.cluster.lease)
        self._lease = NodeLease(lease_s, lambda: uuid.uuid4().hex[:12])
        self._duties, self._orders = Duties(node=name), ClassOrders(application)
        self._say, self._said, self._epoch = say, "", 0
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="spillway-joined", daemon=True)
        self.watch = ""  # address of its own page

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """The classes are its own again; the leader need not wait for its lease."""
        self._leaving.set()
        self._thread.join(_END_S)
        with suppress(SpillwayError):
            self._report("ended")
        self._application.ruled_by = None

    def _beat_on(self) -> None:
        while not self._leaving.is_set():
            try:
                self.beat()
                self._tell("")
            except AwayError as error:
                self._tell(f"{error}; the classes stay as they are")
            except SpillwayError as error:
                self._tell(str(error))
                return
            except Exception as error:  # one that looks well and never reports again is worse
                self._tell(f"a report failed: {error!r}")
            self._leaving.wait(self._lease.lease_s / _BEATS)

    def _tell(self, said: str) -> None:
        if said and said != self._said:
            self._say(f"'{self._name}' in cluster '{self._cluster}': {said}")
        self._said = said

    def beat(self) -> None:
        """Read what holds of classes, say what is done here."""
        self._assignments.read_on()
        if self._lease.lapsed(time.monotonic()):
            self._lease.begin_anew()  # nobody else has what runs here
        self._duties.read(self._assignments, self._lease.life.name)
        if self._duties.is_superseded(self._lease.lives):
            raise SpillwayError(
                "another one goes by this name now, and this one reports no more: give each"
                " application a name of its own, attach(..., node=NAME)"
            )
        if self._duties.flow is not None:
            self._lease.lease_s = self._duties.flow.lease_s
        life, sent_s = self._lease.life.name, time.monotonic()
        self._report("running")
        self._lease.reported(life, sent_s, time.monotonic())
        self._orders.follow(self._duties)

    def _report(self, state: NodeState) -> None:
        application, now_s = self._application, time.time()
        queries = {name: name for name in application.flow.queries}
        host, seen = views(self._name, 1, state, application, now_s)
        self._epoch += 1
        report = NodeReport(
            life=self._lease.life.name,
            before=self._lease.life.before,
            lease_s=self._lease.lease_s,
            state=state,
            applied=self._duties.applied,
            running=dict.fromkeys(queries, 0),
            host=replace(host, state="pinned"),
            queries=seen,
            watch=self.watch,
            machine=socket.gethostname(),
            time_s=now_s,
            **told(application, queries, queries, now_s),
        )
        record = Record(
            cluster=self._cluster,
            key=NODE + self._name,
            epoch=self._epoch,
            writer=report.life,
            body=to_json(NodeReport, report),
        )
        self._reports.append(record)
