"""The operator engine again, one tuple at a time, as plainly as it can be said.

Slow on purpose: no bit sets, no slices, no bulk settlement. `spillway bench simulator` measures
the real engine against it, and the tests compare their results.
"""

from dataclasses import dataclass, field

import numpy as np

from spillway.gate.sampling import PPM, UniformRule, keeps
from spillway_lab.engine.network import Network
from spillway_lab.engine.scheduling import Scheduler, make_scheduler
from spillway_lab.engine.settings import Engine
from spillway_lab.engine.steps import NO_BACKGROUND, STEADY, Steps


@dataclass
class ReferenceRun:
    departed_s: dict[int, float] = field(default_factory=dict)  # tuple -> when its last copy left
    outputs: list[tuple[int, float]] = field(default_factory=list)
    executions: int = 0
    now_s: float = 0.0


class _Box:
    """One operator with its queue."""

    def __init__(self, network: Network, index: int, seed: int) -> None:
        self.operator = network.operators[index]
        self.index = index
        self.queue: list[int] = []
        self.rng = np.random.default_rng([seed, index])
        self.window: list[int] = []  # of a row window
        self.passed: list[float] = []  # of a range window: when each tuple passed
        self.selectivity = 0.0 if self.operator.window else self.operator.selectivity

    @property
    def most_results(self) -> int:
        splits = self.operator.window is not None or self.operator.selectivity > 1.0
        return int(self.selectivity) + 1 if splits else 1


class ReferenceSim:
    """`decisions` are (time, keep fraction): each holds for arrivals after its time."""

    def __init__(
        self,
        network: Network,
        arrivals: dict[str, np.ndarray],
        engine: Engine,
        *,
        decisions: tuple[tuple[float, float], ...] = (),
        oldest: bool = False,
        cost_trace: Steps = STEADY,
        background: Steps = NO_BACKGROUND,
        seed: int = 0,
    ) -> None:
        self.network, self.engine, self.oldest, self.seed = network, engine, oldest, seed
        self.cost_trace, self.background, self.decisions = cost_trace, background, decisions
        self.boxes = [_Box(network, i, seed) for i in range(len(network.operators))]
        scheduler: Scheduler = make_scheduler(engine.scheduler)
        self.turns = list(scheduler.plan(network, engine.batch_tuples))
        self.cycles = engine.scheduler != "highest-rate"
        self.last = -1
        events = [
            (float(time), s, position)
            for s, stream in enumerate(network.streams)
            for position, time in enumerate(arrivals.get(stream.name, ()))
        ]
        self.events = sorted(events)  # a tuple is the number of its event
        self.buffers: list[list[int]] = [[] for _ in network.streams]
        self.next_event = 0
        self.copies: dict[int, int] = {}
        self.run = ReferenceRun()

    def until(self, end_s: float) -> ReferenceRun:
        while self.run.now_s < end_s:
            owed_s = self._arrive()
            speed = self.engine.headroom * (1.0 - self.background.at(self.run.now_s))
            if owed_s > 0.0:
                self.run.now_s += owed_s / speed
                continue
            turn = self._next_turn()
            if turn is None:
                if self.next_event == len(self.events):
                    break
                self.run.now_s = self.events[self.next_event][0]
                continue
            self._activate(*turn, speed)
        return self.run

    def _arrive(self) -> float:
        """Everything that has arrived by now; returns the bookkeeping owed for dropped tuples."""
        owed_s = 0.0
        while self.next_event < len(self.events):
            time_s, stream, position = self.events[self.next_event]
            if time_s > self.run.now_s:
                break
            if self._kept(time_s, stream, position):
                self.buffers[stream].append(self.next_event)
            else:
                owed_s += self.engine.shed_cost_s
            self.next_event += 1
        self._forward()
        return owed_s

    def _kept(self, time_s: float, stream: int, position: int) -> bool:
        fraction = 1.0
        for since_s, decided in self.decisions:
            if since_s < time_s:
                fraction = min(1.0, max(1.0 - self.engine.max_shed, decided))
        rule = UniformRule(keep_ppm=round(fraction * PPM), seed=self.seed)
        return keeps(position, rule, stream)

    def shed_until(self, end_s: float) -> int:
        """Tuples that arrived by then and are not kept."""
        return sum(not self._kept(*event) for event in self.events if event[0] <= end_s)

    def _forward(self) -> None:
        for stream, buffer in zip(self.network.streams, self.buffers, strict=True):
            readers = [self.boxes[r] for r in self.network.readers(stream.name)]
            while buffer and all(len(r.queue) < self.engine.queue_tuples for r in readers):
                tuple_id = buffer.pop(0)
                self.copies[tuple_id] = len(readers)
                for reader in readers:
                    reader.queue.append(tuple_id)

    def _next_turn(self) -> tuple[_Box, int] | None:
        """The next operator in order that has something to do and room for its results."""
        size = len(self.turns)
        start = self.last + 1 if self.cycles else 0
        for step in range(size):
            place = (start + step) % size
            index, most = self.turns[place]
            box = self.boxes[index]
            count = min(len(box.queue), most, self._room(box)) if box.queue else 0
            if count > 0:
                self.last = place
                return box, count
        return None

    def _room(self, box: _Box) -> int:
        """How many tuples it may take so that all its readers can hold the results."""
        room = 10**9
        for r in self.network.readers(box.operator.name):
            queue = self.boxes[r].queue
            fits = (self.engine.queue_tuples - len(queue)) // box.most_results
            room = min(room, max(fits, 0 if queue else 1))
        return room

    def _activate(self, box: _Box, count: int, speed: float) -> None:
        run, operator = self.run, box.operator
        factor = self.cost_trace.at(run.now_s)
        spent_s = self.engine.activation_s + operator.cost_s * factor * count
        run.now_s += (spent_s + self.engine.overhead_s) / speed
        run.executions += count
        if operator.window is not None:
            self._slide(box)
        touched = []
        for _ in range(count):
            tuple_id = box.queue.pop(0)
            self.copies[tuple_id] -= 1
            results = self._results(box, tuple_id)
            self._hand_on(box, results)
            touched += [tuple_id, *results]
        for tuple_id in touched:
            if self.copies[tuple_id] == 0:
                run.departed_s[tuple_id] = run.now_s
        if operator.window is not None:
            box.passed += [run.now_s] * count
            self._slide(box)
        self._forward()

    def _slide(self, box: _Box) -> None:
        window = box.operator.window
        assert window is not None
        box.passed = [t for t in box.passed if t > self.run.now_s - window.seconds]
        box.selectivity = box.operator.selectivity * len(box.passed) / window.tuples

    def _results(self, box: _Box, tuple_id: int) -> list[int]:
        operator = box.operator
        if operator.rows > 1:
            box.window.append(tuple_id)
            if self.oldest and len(box.window) == 1:
                self.copies[tuple_id] += 1  # waits in the window for its result
            if len(box.window) < operator.rows:
                return []
            carrier = box.window[0] if self.oldest else box.window[-1]
            if self.oldest:
                self.copies[carrier] -= 1
            box.window = []
            return [carrier]
        if operator.selectivity == 1.0 and operator.window is None:
            return [tuple_id]
        whole = int(box.selectivity)
        matches = whole + (box.rng.random() < box.selectivity - whole)
        return [tuple_id] * matches

    def _hand_on(self, box: _Box, results: list[int]) -> None:
        readers = self.network.readers(box.operator.name)
        for result in results:
            self.copies[result] += len(readers)
            for reader in readers:
                self.boxes[reader].queue.append(result)
            if not readers:
                self.run.outputs.append((result, self.run.now_s))
