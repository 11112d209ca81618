"""Queries of one application that change while they run: a move from one node to itself.

Both checkpoints of a query are in the same folder and run in the same session; what is decided on
many nodes by a leader and told through a control log is here one step of one thread.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import Flow, Query
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.changing import change_of
from spillway.hosts.cluster.duties import Duty, duties_of
from spillway.hosts.cluster.handing import Handing
from spillway.hosts.cluster.handovers import Handovers
from spillway.hosts.cluster.messages import Assignment, NodeReport, run_name
from spillway.hosts.cluster.versions import HERE, Versions
from spillway.hosts.spark.driver.application import Application
from spillway.sinks.fence import Fence

_AHEAD_S = 2.0  # both sides are asked several times in it
_WITHIN_S = 120.0
_LAST_BATCH_S = 3.0
_LOOK_S, _CHANGING_S = 0.5, 0.1
_FOR_EVER_S = 1e12  # no lease ends: nobody else can take these queries over


class InPlace:
    """Made before the application starts, and supervises it."""

    def __init__(self, application: Application, flow: Flow, versions: Versions) -> None:
        self._application, self._flow, self._versions = application, flow, versions
        self._body = flow.model_dump(by_alias=True, exclude={"queries", "cluster"})
        self._handovers = Handovers(flow, _WITHIN_S)
        self._handing = Handing(application, application.folder, _AHEAD_S)
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        application.moves, application.gates.leased = True, True
        application.dispatcher.plan_until_s = _FOR_EVER_S
        application.fence_of = self._fence
        application.change_query = self.change
        for run, duty in self._duties().items():
            self._handing.may_start(run, duty)

    @property
    def look_s(self) -> float:
        """Until it is to supervise again: the two sides of a change wait for each other."""
        known = self._versions.given.values()
        changes = any(given.next is not None or given.changes_to is not None for given in known)
        return _CHANGING_S if changes else _LOOK_S

    def change(self, name: str, changes: Mapping[str, Any] | None, only_check: bool) -> list[str]:
        """What will happen; `changes`: None for the version before. Called by any thread."""
        if name not in self._flow.queries:
            raise unknown_name("query", name, self._flow.queries)
        with self._lock:
            given = self._versions.of(name)
            if given.next is not None or given.changes_to is not None:
                raise SpillwayError(f"query '{name}' changes already: wait until that is done")
            wanted = given.before if changes is None else changes
            if wanted is None:
                raise SpillwayError(f"query '{name}' was never changed: there is no version before")
            found = change_of(name, given, wanted, self._body)
            if not only_check:
                wish = replace(given, changes_to=found.query, reason="changed by a user")
                self._versions.put(name, wish)
        return found.said()

    def supervise(self) -> None:
        """Keep all queries running, and bring changes on."""
        try:
            self._application.supervise()
        except SpillwayError as error:
            if not self._given_up(error):
                raise
        self._step()

    def _step(self) -> None:
        """One look at both sides of every change, and what follows from it."""
        duties, flow = self._duties(), self._application.flow
        self._handing.look(duties, flow.queries.keys() & duties.keys())
        now = Standing(reports={HERE: self._report()}, over=frozenset())
        with self._lock:
            for name, given in self._versions.given.items():
                self._decide(name, given, now)
        self._carry_out(self._duties())

    def _decide(self, name: str, given: Assignment, now: Standing) -> None:
        new = self._handovers.begin(name, given, now, _here)
        if new.next is not None:
            gone_on = self._handovers.go_on(name, new, now, _here, time.monotonic())
            new = gone_on or new
        if new != given:
            self._versions.put(name, new)
            state = "runs" if new.next is None else new.next.state
            self._application.event(
                "changes", query=name, generation=new.newest, state=state, reason=new.reason
            )

    def _carry_out(self, duties: Mapping[str, Duty]) -> None:
        application = self._application
        names = self._versions.given
        for run in [r for r in application.flow.queries if r.partition("@")[0] in names]:
            if run not in duties:
                application.remove(run, _LAST_BATCH_S)
                self._handing.forget(run)
        self._failed = {run: why for run, why in self._failed.items() if run in duties}
        for run, duty in duties.items():
            is_new = run not in application.flow.queries and run not in self._failed
            if is_new and self._handing.may_start(run, duty):
                try:
                    application.add(run, Query.model_validate(dict(duty.query)))
                except SpillwayError as error:
                    self._failed[run] = str(error)

    def _given_up(self, error: SpillwayError) -> bool:
        """A version that fails again and again is not what ends the flow."""
        runs = self._duties().items()
        found = [run for run, duty in runs if duty.follows is not None and f"'{run}'" in str(error)]
        for run in found:
            self._failed[run] = str(error)
            self._application.remove(run)
            self._handing.forget(run)
        return bool(found)

    def _duties(self) -> dict[str, Duty]:
        return {
            run_name(name, duty.generation): duty
            for name, given in self._versions.given.items()
            for duty in duties_of(name, given, (HERE, HERE))
        }

    def _report(self) -> NodeReport:
        return NodeReport(
            life=HERE,
            lease_s=_FOR_EVER_S,
            state="running",
            applied=0,
            running={},
            reached=self._handing.said(),
            failed=self._failed,
        )

    def _fence(self, run: str) -> Fence | None:
        """Tells a sink whose batches count anew which checkpoint they are of."""
        name, _, generation = run.partition("@")
        if not generation:
            return None
        owner = f"{self._application.folder.root}/{name}"
        return Fence(owner=owner, generation=int(generation), epoch=1)


def _here(name: str, given: Assignment) -> str:
    return HERE
