"""A node: one Spark application that takes its queries from the control log.

Two threads. One beats: it reads the assignments, says where the node stands, and so renews the
lease; it never waits for Spark. The other one carries out: it starts and stops queries, which takes
seconds. A node that lost its lease stops its queries, begins a new life, and waits to be given
some again: what it held may run elsewhere by now.
"""

import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from spillway.coding import to_json
from spillway.errors import SpillwayError
from spillway.hosts.cluster.bodies import ASSIGNMENTS
from spillway.hosts.cluster.class_orders import ClassOrders
from spillway.hosts.cluster.control_log import AwayError, Latest
from spillway.hosts.cluster.duties import Duties, Duty, names_of
from spillway.hosts.cluster.handing import Handing
from spillway.hosts.cluster.leases import NodeLease
from spillway.hosts.cluster.messages import NODE, NodeReport, NodeState
from spillway.hosts.cluster.node_folder import Given, NodeFolder
from spillway.hosts.cluster.node_view import as_queries, told, views
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.written import query_of
from spillway.hosts.spark.driver.application import Application
from spillway.sinks.fence import Fence

BEATS = 5  # in a lease
LAST_BATCH_S = 3.0  # that a query which leaves may take for the batch it is in
HANGS_S = 60.0  # a query that takes longer to stop
AGAIN_S = 30.0  # until a query that was given up is tried again: what it needs may be back
_LOOK_S = 0.1
_MOVING_S = 0.2  # between two beats while a query moves: its two sides wait for each other
Say = Callable[[str], None]


class Node:
    def __init__(self, name: str, place: Place, say: Say) -> None:
        self._name, self._cluster, self._say = name, place.name, say
        self._reports, self._beside = place.reports(), place.file.parent
        self._assignments = Latest(place.assignments(), ASSIGNMENTS)
        self._application: Application | None = None
        self._folder: NodeFolder | None = None
        self._handing: Handing | None = None
        self._lease = NodeLease(float("inf"), lambda: uuid.uuid4().hex[:12])
        self._lock, self._one_beat = threading.Lock(), threading.Lock()  # both threads may beat
        self.duties, self.watch = Duties(node=name), ""  # and the address of its own page
        self._busy: dict[str, int] = {}  # query -> epoch
        self._failed: dict[str, tuple[str, float]] = {}  # why, and when it is tried again
        self._classes: ClassOrders | None = None
        self._state: NodeState = "starting"
        self._stops_since_s: float | None = None
        self._epoch, self._away = 0, False
        self._stopping = threading.Event()
        self._beating = threading.Thread(target=self._beat_on, name="spillway-beat", daemon=True)
        self.ended_by: SpillwayError | None = None

    @property
    def life(self) -> str:
        return self._lease.life.name

    # -- beating

    def await_flow(self, wait_s: float) -> None:
        """Until a coordinator has said what this cluster runs; then it beats."""
        deadline_s = time.monotonic() + wait_s
        while self.duties.flow is None:
            self._assignments.read_on()
            self.duties.read(self._assignments, self._lease.life.name)
            if self.duties.flow is None:
                if time.monotonic() > deadline_s:
                    raise SpillwayError(
                        f"no coordinator has led cluster '{self._cluster}' within {wait_s:g} s:"
                        " start one with `spillway cluster run`"
                    )
                time.sleep(_LOOK_S)
        self._lease.lease_s = self.duties.flow.lease_s
        self._beating.start()

    def _beat_on(self) -> None:
        while not self._stopping.is_set():
            try:
                self.beat()
                if self._away:
                    self._say("the control log answers again")
                self._away = False
            except AwayError as error:
                if not self._away:
                    lease_s = self._lease.lease_s
                    self._say(f"{error}; without it the queries here stop after {lease_s:g} s")
                self._away = True
            except SpillwayError as error:
                self.ended_by = error
                self._stopping.set()
            except Exception as error:  # a node that looks well and never reports again is worse
                self._say(f"a report failed: {error!r}")
            moves = any(duty.move is not None for duty in self.duties.queries.values())
            self._stopping.wait(_MOVING_S if moves else self._lease.lease_s / BEATS)

    def beat(self) -> None:
        """Read what is to be done, say what is done. Not after a lapse, before all has stopped."""
        with self._one_beat:
            self._read_and_report()

    def _read_and_report(self) -> None:
        self._assignments.read_on()
        with self._lock:
            if self._lease.lapsed(time.monotonic()) or self._hangs(time.monotonic()):
                return
            self.duties.read(self._assignments, self._lease.life.name)
            if self.duties.is_superseded(self._lease.lives):
                raise SpillwayError(
                    f"another node goes by the name '{self._name}' now: this one ends; give every"
                    " node of a cluster a name of its own"
                )
            report, life = self._report(), self._lease.life.name
            self._epoch += 1
            record = Record(
                cluster=self._cluster,
                key=NODE + self._name,
                epoch=self._epoch,
                writer=life,
                body=to_json(NodeReport, report),
            )
        sent_s = time.monotonic()
        self._reports.append(record)
        with self._lock:
            self._lease.reported(life, sent_s, time.monotonic())
            if self._application is not None:
                self._application.dispatcher.plan_until_s = self._lease.life.until_s

    def _hangs(self, now_s: float) -> bool:
        """A query does not stop: the node lets its lease go, and others need not wait for ever."""
        since_s = self._stops_since_s
        return since_s is not None and now_s - since_s > HANGS_S

    def _report(self) -> NodeReport:
        application, life, duties = self._application, self._lease.life, self.duties
        names, cores = names_of(duties.queries), 1 if duties.flow is None else duties.flow.cores
        now_s, name = time.time(), self._name
        host, queries = as_queries(*views(name, cores, self._state, application, now_s), names)
        return NodeReport(
            life=life.name,
            before=life.before,
            lease_s=self._lease.lease_s,
            state=self._state,
            applied=duties.applied,
            running=dict(self._busy),
            host=host,
            queries=queries,
            **told(application, names, self._busy, now_s),
            failed={run: why for run, (why, _) in self._failed.items()},
            reached={} if self._handing is None else self._handing.said(),
            watch=self.watch,
            machine=socket.gethostname(),
            time_s=now_s,
        )

    def serve(self, application: Application, folder: NodeFolder, stop: threading.Event) -> None:
        """Until it is told to end, by the leader or by `stop`; raises what ended it otherwise."""
        application.gates.leased = True
        application.fence_of = self._fence
        application.dispatcher.plan_until_s = self._lease.life.until_s
        application.moves = True
        self._application, self._folder, self._state = application, folder, "running"
        self._classes = ClassOrders(application)
        self._handing = Handing(application, folder, self._lease.lease_s)
        try:
            while not stop.wait(_LOOK_S) and self.ended_by is None:
                if self.duties.order.state == "stops" and not self._busy:
                    break
                self._state = "running" if self.duties.order.state == "runs" else "draining"
                self.carry_out(time.monotonic())
        finally:
            self._end()
        if self.ended_by is not None:
            raise self.ended_by

    def carry_out(self, now_s: float) -> None:
        """One difference between what runs and what should."""
        assert self._classes is not None
        with self._lock:
            lapsed = self._lease.lapsed(now_s)
            duties = {} if lapsed else dict(self.duties.queries)
            busy = dict(self._busy)
        if lapsed and not busy:
            self._begin_anew()
        leaving = [n for n, epoch in busy.items() if n not in duties or duties[n].epoch != epoch]
        coming = sorted(
            (run for run in duties if run not in busy and self._can_start(run, duties[run])),
            key=lambda run: -self._priority(duties[run]),
        )
        if leaving:
            self._stop(leaving[0], 0.0 if lapsed else LAST_BATCH_S)
        elif coming:
            self._start(coming[0])
        self._failed = {n: f for n, f in self._failed.items() if n in duties.keys() - self._busy}
        if self._handing is not None and self._handing.look(duties, busy):
            self._beat_now()
        self._classes.follow(self.duties)
        self._supervise()

    def _can_start(self, run: str, duty: Duty) -> bool:
        assert self._handing is not None
        _, again_s = self._failed.get(run, ("", 0.0))
        return time.monotonic() > again_s and self._handing.may_start(run, duty)

    def _priority(self, duty: Duty) -> int:
        assert self._application is not None
        return self._application.classes[duty.query.get("class", "default")].priority

    def _begin_anew(self) -> None:
        with self._lock:
            self._lease.begin_anew()
            self.duties.queries = {}
        self._say("its lease ran out, its queries have stopped; it reports anew")

    def _start(self, name: str) -> None:
        assert self._application is not None
        assert self._folder is not None
        with self._lock:  # what is no duty any more is not begun
            duty = self.duties.queries.get(name)
            if duty is None or not self._lease.holds(time.monotonic()):
                return
            self._busy[name] = duty.epoch
        given = Given(name=duty.name, generation=duty.generation, epoch=duty.epoch)
        self._folder.given[name] = given
        self._application.event("given", query=name, epoch=duty.epoch, reason=duty.reason)
        try:
            self._application.add(name, query_of(name, duty.query, self._beside))
        except SpillwayError as error:
            self._give_up(name, str(error))

    def _fence(self, name: str) -> Fence:
        assert self._folder is not None
        given = self._folder.given[name]
        owner = f"{self._cluster}/{given.name}"
        return Fence(owner=owner, generation=given.generation, epoch=given.epoch)

    def _stop(self, name: str, wait_s: float) -> None:
        assert self._application is not None
        self._stops_since_s = time.monotonic()
        self._application.remove(name, wait_s)
        self._stops_since_s = None
        if self._handing is not None:
            self._handing.forget(name)
        with self._lock:
            epoch = self._busy.pop(name, None)
        self._application.event("left", query=name, epoch=epoch)
        self._beat_now()

    def _beat_now(self) -> None:
        """Whoever waits for it need not wait for the next one."""
        with suppress(SpillwayError):
            self.beat()

    def _give_up(self, name: str, why: str) -> None:
        assert self._application is not None
        self._failed[name] = why, time.monotonic() + AGAIN_S
        self._say(f"query '{name}' is given up: {why}")
        self._application.event("given up", query=name, error=why)
        self._stop(name, 0.0)

    def _supervise(self) -> None:
        assert self._application is not None
        try:
            self._application.supervise()
        except SpillwayError as error:
            named = [name for name in self._busy if f"'{name}'" in str(error)]
            if not named:
                raise
            self._give_up(named[0], str(error))

    def give_up(self) -> None:
        """It could not serve: say so, if it can still be said."""
        if not self._stopping.is_set():
            with self._lock:
                self._busy, self._state = {}, "ended"
            self._say_last()

    def _end(self) -> None:
        """Stop all, then say that nothing runs: nobody has to wait for the lease."""
        assert self._application is not None
        self._application.stop()
        with self._lock:
            self._busy, self._state = {}, "ended"
        self._say_last()

    def _say_last(self) -> None:
        self._stopping.set()
        if self._beating.is_alive():
            self._beating.join()
        with suppress(SpillwayError):
            self.beat()
