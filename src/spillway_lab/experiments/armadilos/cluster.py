"""A fluid model of many nodes with classes, quotas and shedding, vectorised over queries.

Per step, each node serves its classes up to their quotas and lends what is spare, highest priority
first (DILoS). What is not served waits. Where shedding is on, each class admits what its capacity
can take, judged by the step before: a load manager that lags by one step. A query that moves is
worked on by both nodes for the length of its window (UniMiCo).
"""

import numpy as np
import numpy.typing as npt

from spillway.cluster.actions import ClusterAction, MoveQuery, SetQuota, StartNode, StopNode
from spillway_lab.experiments.armadilos.classes import CLASSES
from spillway_lab.experiments.armadilos.workload import Day

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool]

SERVICE_S = 0.02  # delay on an idle node
NODE_START_S = 120.0
HANDSHAKE_S = 1.0
TARGETS_S = np.array([c.target_delay_s for c in CLASSES])
PRIORITIES = np.array([float(c.priority) for c in CLASSES])


class Cluster:
    """Slots for nodes of one core; `step`, then look at the public arrays."""

    def __init__(self, day: Day, slots: int, sheds: bool, running: int | None = None) -> None:
        """`running`: nodes at the start, of `slots` at most; all of them when not told."""
        self.day, self.slots, self.sheds = day, slots, sheds
        self.now_s = 0.0
        self._step = 0
        queries, classes = day.queries, len(CLASSES)
        at_start = slots if running is None else running
        self.running: Bools = np.arange(slots) < at_start
        self._slots = {f"node-{n + 1}": n for n in range(at_start)}
        self.ready_s: Floats = np.full(slots, np.inf)  # of nodes that start
        self.where: Ints = balanced(day, at_start)
        self.copy_on: Ints = np.full(queries, -1)
        self.moved_at_s: Floats = np.full(queries, np.inf)
        self.quota: Floats = np.tile(PRIORITIES / PRIORITIES.sum(), (slots, 1))
        self.keep: Floats = np.ones((slots, classes))
        self.backlog: Floats = np.zeros(queries)  # tuples
        self.delay_s: Floats = np.zeros((slots, classes))
        self.load: Floats = np.zeros((slots, classes))  # offered, in cores
        self.shed: Floats = np.zeros(queries)  # tuples, all day
        self.shed_alone = 0.0  # of the highest class, where it alone asks for more than a node
        self.violation_s: Floats = np.zeros(queries)
        self.node_s = 0.0
        self.moves = 0

    @property
    def done(self) -> bool:
        return self._step >= self.day.steps

    @property
    def starting(self) -> Bools:
        return np.isfinite(self.ready_s)

    def step(self) -> None:
        day, dt = self.day, self.day.step_s
        self._arrive()
        klass, node = day.klass, self.where
        offered = day.rate_per_s[self._step][day.stream] * dt
        admitted = offered * self.keep[node, klass] if self.sheds else offered
        self.shed += offered - admitted
        waiting = self.backlog + admitted
        parse = self._parse_work(dt)
        work = self.by_class(node, klass, waiting * day.cost_s) + parse
        self.load = (self.by_class(node, klass, offered * day.cost_s) + parse) / dt
        alone = (klass == 0) & (self.load[node, 0] > 1.0)
        self.shed_alone += float((offered - admitted)[alone].sum())
        moving = np.flatnonzero(self.copy_on >= 0)
        double = admitted[moving] * day.cost_s[moving]
        work += self.by_class(self.copy_on[moving], klass[moving], double)
        served = share_out(work, self.quota, dt)
        left = work - served
        unserved = np.divide(left, work, out=np.zeros_like(work), where=work > 0.0)
        self.backlog = waiting * unserved[node, klass]
        self._account(served, left, dt)
        self.keep = self._next_keep(left, dt)
        self._step += 1
        self.now_s += dt

    def actuate(self, action: ClusterAction) -> None:
        if isinstance(action, StartNode):
            free = set(range(self.slots)).difference(self._slots.values())
            self._slots[action.node] = min(free)
            self.ready_s[min(free)] = self.now_s + NODE_START_S
        elif isinstance(action, StopNode):
            self.running[self._slots.pop(action.node)] = False
        elif isinstance(action, SetQuota):
            index = [c.name for c in CLASSES].index(action.class_name)
            self.quota[self._slots[action.node], index] = action.quota
        elif isinstance(action, MoveQuery):
            query = int(action.query.removeprefix("q"))
            self.copy_on[query] = self._slots[action.destination]
            self.moved_at_s[query] = self.now_s + HANDSHAKE_S + self.day.window_s[query]
            self.moves += 1

    @property
    def names(self) -> dict[int, str]:
        """Node by slot, of those that run or start."""
        return {n: name for name, n in self._slots.items()}

    def _arrive(self) -> None:
        """Nodes that are ready run, with fresh quotas; moves whose window has passed end."""
        ready = self.ready_s <= self.now_s
        self.running |= ready
        self.quota[ready] = PRIORITIES / PRIORITIES.sum()
        self.ready_s[ready] = np.inf
        ended = self.moved_at_s <= self.now_s
        self.where = np.where(ended, self.copy_on, self.where)
        self.copy_on[ended] = -1
        self.moved_at_s[ended] = np.inf

    def _parse_work(self, dt: float) -> Floats:
        """Each stream is parsed once on a node, for the highest class that reads it there."""
        day = self.day
        highest = np.full((self.slots, day.rate_per_s.shape[1]), len(CLASSES))
        np.minimum.at(highest, (self.where, day.stream), day.klass)
        moving = self.copy_on >= 0
        np.minimum.at(highest, (self.copy_on[moving], day.stream[moving]), day.klass[moving])
        node, stream = np.nonzero(highest < len(CLASSES))
        work = day.rate_per_s[self._step][stream] * dt * day.parse_s
        return self.by_class(node, highest[node, stream], work)

    def by_class(self, node: Ints, klass: Ints, work: Floats) -> Floats:
        """Sums by (node, class)."""
        cells = self.slots * len(CLASSES)
        places = node * len(CLASSES) + klass
        flat: Floats = np.bincount(places, weights=work, minlength=cells).astype(np.float64)
        return flat.reshape(self.slots, len(CLASSES))

    def _account(self, served: Floats, left: Floats, dt: float) -> None:
        # A class waits for its own tuples and for those of higher classes.
        busy = served.cumsum(axis=1) / dt
        queued = left / np.maximum(served / dt, 1e-3)
        self.delay_s = SERVICE_S / (1.0 - np.minimum(busy, 0.95)) + queued
        late = self.delay_s > TARGETS_S
        self.violation_s += dt * late[self.where, self.day.klass]
        self.node_s += dt * float(self.running.sum() + self.starting.sum())

    def _next_keep(self, left: Floats, dt: float) -> Floats:
        """What fits next to what waits, as a part of what is offered."""
        offered = self.load * dt
        fits = share_out(offered + left, self.quota, dt) - left
        keep = np.divide(fits, offered, out=np.ones_like(offered), where=offered > 0.0)
        return np.asarray(keep.clip(0.0, 1.0))


def share_out(work: Floats, quota: Floats, seconds: float) -> Floats:
    """Serve up to the quotas, then lend what is spare, highest priority (first column) first."""
    served = np.minimum(work, quota * seconds)
    spare = seconds - served.sum(axis=1)
    for column in range(work.shape[1]):
        extra = np.minimum(work[:, column] - served[:, column], spare)
        served[:, column] += extra
        spare -= extra
    return served


def balanced(day: Day, slots: int) -> Ints:
    """Heaviest query first onto the node that has least: even for the average day."""
    load = np.zeros(slots)
    where = np.zeros(day.queries, dtype=np.int64)
    mean = day.rate_per_s.mean(axis=0)[day.stream] * day.cost_s
    for query in np.argsort(-mean, kind="stable"):
        where[query] = int(load.argmin())
        load[where[query]] += mean[query]
    return where
