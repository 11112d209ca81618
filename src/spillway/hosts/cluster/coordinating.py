"""A coordinator process: reads both logs, leads or stands by, writes what the leader decides.

Nobody waits for it: nodes go on with what they were given as long as they can renew their lease. It
keeps nothing that is not in the log, so any other one goes on where it stops.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.flow.cluster import Cluster
from spillway.flow.links import all_linked
from spillway.hosts.cluster.bodies import ASSIGNMENTS, REPORTS
from spillway.hosts.cluster.chief import Chief, Orders
from spillway.hosts.cluster.control_log import AwayError, Latest, OvertakenError
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.election import Election
from spillway.hosts.cluster.launching import launcher_of
from spillway.hosts.cluster.messages import NODE, REQUEST, FlowGiven, Request
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.records import Entries, Record
from spillway.hosts.cluster.roster import Roster
from spillway.journal.entries import Event
from spillway.journal.files import FileJournal
from spillway.model import parse_duration_s

LOOK_S, MOVING_S = 0.5, 0.1  # between two looks; while queries move
_ANSWERED_S = 60.0  # an answer that nobody took by then is forgotten
Say = Callable[[str], None]


class Coordinating:
    def __init__(self, place: Place, say: Say, *, advises: bool = False) -> None:
        cluster, self._place, self._say = place.cluster, place, say
        self.me = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._reports = Latest(place.reports(), REPORTS)
        self._assignments = Latest(place.assignments(), ASSIGNMENTS)
        lease_s = parse_duration_s(cluster.lease)
        self._election = Election(self.me, place.name, lease_s, socket.gethostname())
        self._roster = Roster(lease_s)
        self._chief = Chief(place.flow, _given(place, lease_s), _coordinator(cluster))
        self._chief.advises = advises
        self._launch = launcher_of(cluster, place.file, place.logs)
        self._journal = FileJournal(place.folder / "coordinators" / f"{self.me}.jsonl")
        self._period_s, self._due_s = parse_duration_s(cluster.period), float("-inf")
        self._leads = self._is_away = self._moving = False
        self._answered_s: dict[str, float] = {}
        self.has_ended = False
        self.listeners: list[Callable[[Event], None]] = []  # told what the journal is told

    @property
    def leads(self) -> bool:
        return self._leads

    def run(self, stop: threading.Event, ends: threading.Event) -> None:
        """Until it is stopped; then another one may lead at once. Or until the cluster has ended,
        which `ends` asks for."""
        has_asked = False
        while not self.has_ended and not stop.wait(MOVING_S if self._moving else LOOK_S):
            try:
                if ends.is_set() and not has_asked:
                    self._reports.log.append(self._request(Request(kind="end")))
                    has_asked = True
                self.step()
                self._is_away = False
            except OvertakenError:
                continue  # read on, decide again
            except AwayError as error:
                if not self._is_away:
                    self._tell("away", str(error))
                self._is_away = True
        if self._leads:
            with suppress(SpillwayError):
                last = self._election.resigned(self._assignments, ended=self.has_ended)
                self._assignments.append(last)

    def step(self) -> None:
        """One reading, and what follows from it."""
        began_s = time.monotonic()
        entries = self._reports.read_on()
        self._tell_skipped(entries, self._assignments.read_on())
        read_s = time.monotonic()
        draft = Draft(self._assignments, self._place.name, self.me)
        self._roster.read(entries, began_s, read_s, draft.lives)
        if (word := self._election.next_record(self._assignments, began_s, read_s)) is not None:
            sent_s = time.monotonic()
            self._assignments.append(word)
            self._election.sent(sent_s)
        leads = self._election.role(self._assignments) == "leads"
        if leads and not self._leads:
            self._take_over()
        elif self._leads and not leads:
            self._tell("stands by", "another coordinator leads now")
        self._leads, self.has_ended = leads, self._election.has_ended
        self._moving = False
        if leads:
            self._lead(read_s)

    def _take_over(self) -> None:
        draft = Draft(self._assignments, self._place.name, self.me)
        self._chief.begin(draft)
        for record in draft.records():
            self._assignments.append(record)
        self._tell("leads", f"this coordinator leads cluster '{self._place.name}'")

    def _lead(self, now_s: float) -> None:
        due = now_s >= self._due_s
        if due:
            self._due_s = now_s + self._period_s
        draft = Draft(self._assignments, self._place.name, self.me)
        requests = {
            asked: from_json(Request, placed.record.body or {})
            for asked, placed in self._reports.of(REQUEST).items()
        }
        orders = self._chief.decide(draft, self._roster, requests, now_s, due=due)
        self._write(orders)
        self._forget(requests, now_s)
        self.has_ended, self._moving = orders.ended, orders.moving

    def _write(self, orders: Orders) -> None:
        for record in orders.records:
            self._assignments.append(record)
            node = record.key.removeprefix(NODE)
            if node in orders.launch and record.key.startswith(NODE):
                self._start(node)
        for note in orders.notes:
            if note.kind == "node gone":
                self._reports.log.append(self._forgotten(NODE + note.fields["node"]))
            self._record(note.kind, **note.fields)
            said = ", ".join(f"{k} {v}" for k, v in note.fields.items() if v not in (None, ""))
            self._say(f"{note.kind}: {said}")

    def _start(self, node: str) -> None:
        try:
            self._launch(node)
        except SpillwayError as error:
            self._tell("not launched", str(error))

    def _forget(self, requests: dict[str, Request], now_s: float) -> None:
        """Requests whose asker has gone; the answer goes with the request."""
        for asked in requests:
            if now_s - self._answered_s.setdefault(asked, now_s) > _ANSWERED_S:
                self._reports.log.append(self._forgotten(REQUEST + asked))
        self._answered_s = {a: s for a, s in self._answered_s.items() if a in requests}

    def _forgotten(self, key: str) -> Record:
        """What a node or a user that is gone has left; one that comes back reports anew."""
        name = self._place.name
        return Record(cluster=name, key=key, epoch=0, writer=self.me, body=None)

    def _request(self, request: Request) -> Record:
        return Record(
            cluster=self._place.name,
            key=REQUEST + uuid.uuid4().hex[:12],
            epoch=1,
            writer=self.me,
            body=to_json(Request, request),
        )

    def _tell_skipped(self, *readings: Entries) -> None:
        for entries in readings:
            for said in entries.skipped:
                self._tell("skipped", said)

    def _tell(self, kind: str, said: str) -> None:
        self._record(kind, said=said)
        self._say(said)

    def _record(self, kind: str, **fields: Any) -> None:
        now_s = time.time()
        self._journal.event(now_s, kind, **fields)
        for listen in self.listeners:
            listen(Event(time_s=now_s, kind=kind, fields=fields))


def _given(place: Place, lease_s: float) -> FlowGiven:
    flow = all_linked(place.flow).model_dump(by_alias=True, exclude={"queries", "cluster"})
    cluster = place.cluster
    return FlowGiven(
        flow=flow,
        folder=str(place.folder),
        lease_s=lease_s,
        cores=cluster.cores,
        master=cluster.master,
        tables=cluster.tables,
    )


def _coordinator(cluster: Cluster) -> Coordinator:
    return Coordinator(
        CoordinatorSettings(
            upper=cluster.upper,
            target=cluster.target,
            lower=cluster.lower,
            patience_reports=cluster.patience,
            idle_reports=cluster.idle,
            cooldown_s=parse_duration_s(cluster.cooldown),
            min_nodes=cluster.fewest,
            max_nodes=cluster.most,
        )
    )
