"""The papers' engine: one processor, operators with bounded queues, one activation at a time."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import get_args

import numpy as np

from spillway.errors import unknown_name
from spillway.gate.sampling import PPM, UniformRule
from spillway.model import Action, Decision, KeepFraction, Measurement, Target
from spillway.ports import LoadManager
from spillway_lab.engine.departures import SHED, DepartureLog
from spillway_lab.engine.inputs import Input, Timeline, keep_at_random, open_inputs, owners_of
from spillway_lab.engine.monitor import Monitor
from spillway_lab.engine.network import Network
from spillway_lab.engine.operators import Node
from spillway_lab.engine.scheduling import make_scheduler
from spillway_lab.engine.settings import DelayOf, Engine
from spillway_lab.engine.state import ClassState, Counts, classes_of
from spillway_lab.engine.statistics import DelayRecord, Floats, Totals
from spillway_lab.engine.steps import UNDISTURBED, Disturbances
from spillway_lab.engine.wiring import (
    add_crossings,
    connect_inputs,
    copies_at_entry,
    in_bit_order,
    make_nodes,
)


class NetworkPlant:
    """A network of operators in virtual time; everything that happens follows from the seed.

    Delay is that of every tuple, until its last copy is gone ("every-tuple", ctrl paper), of
    output tuples only ("output", thesis), or of output tuples from their oldest input on
    ("oldest-input", dissp paper).

    Every class has a gate in front of its streams, and wherever an operator of another class
    feeds it.
    """

    def __init__(
        self,
        network: Network,
        arrivals: Mapping[str, Floats] | Floats,
        *,
        target: Target | Mapping[str, Target],
        engine: Engine | None = None,
        delay: DelayOf = "every-tuple",
        disturbances: Disturbances = UNDISTURBED,
        seed: int = 0,
    ) -> None:
        if delay not in get_args(DelayOf):
            raise unknown_name("definition of delay", delay, get_args(DelayOf))
        self.network = network
        self.engine = engine or Engine()
        self.now_s = 0.0  # when the processor is free again
        self._time_s = 0.0  # until when the plant was advanced
        self._seed = seed
        self._rng = np.random.default_rng([seed, len(network.operators)])
        self._disturbances = disturbances
        self._scheduler = make_scheduler(self.engine.scheduler)
        if not isinstance(arrivals, Mapping):
            arrivals = {network.streams[0].name: arrivals}
        self.inputs, arrived_s = open_inputs(network, arrivals)
        self.log = DepartureLog(arrived_s, copies_at_entry(network, self.inputs, arrived_s.size))
        self._connect(oldest=delay == "oldest-input")
        self.classes = classes_of(network.class_names, target)
        gates = [*self.inputs, *self.crossings]
        every_tuple = delay == "every-tuple"
        self._monitor = Monitor(network, self.nodes, gates, self.log, self.classes, every_tuple)
        self._rules = {name: UniformRule(keep_ppm=PPM, seed=seed) for name in self.classes}
        self._ready = 0
        self._debt_s = 0.0  # bookkeeping for dropped tuples, paid before anything else runs
        self._change_s = -1.0
        self._timeline = Timeline([], [], [])
        self._stream_of = owners_of(self.inputs, arrived_s.size)

    def _connect(self, *, oldest: bool) -> None:
        network, engine = self.network, self.engine
        self.nodes = make_nodes(network, engine, self.log, seed=self._seed, oldest=oldest)
        turns = self._scheduler.plan(network, engine.batch_tuples)
        self._by_bit = in_bit_order(self.nodes, turns)
        self.crossings = add_crossings(self.nodes, first_partition=len(self.inputs))
        connect_inputs(network, self.nodes, self.inputs)
        self._charge, self._overhead_s = self._scheduler.charge, engine.overhead_s

    @property
    def executions(self) -> int:
        """One execution is one tuple through one operator."""
        return self._monitor.executions + sum(node.processed for node in self.nodes)

    @property
    def activations(self) -> int:
        return sum(node.activations for node in self.nodes)

    # -- virtual time

    def begin(self, period_s: float, managers: Mapping[str, LoadManager]) -> None:
        """Before the first advance: statistics are kept in periods of this length.

        A class whose law decides about a buffer holds its tuples undecided in the input buffer,
        where `KeepOfBacklog` finds them; for the others the gate decides when a tuple arrives.
        """
        buffered = {name for name, law in managers.items() if law.cadence == "buffer"}
        for state in self.classes.values():
            state.delays = DelayRecord(period_s)
        for source in self.inputs:
            source.buffered = source.class_name in buffered

    def advance(self, until_s: float) -> None:
        """Run until then. An activation that has started is finished, so `now_s` may be later."""
        self._open_timeline(until_s)
        by_bit, pick = self._by_bit, self._scheduler.pick
        while self.now_s < until_s:
            if self._timeline.next_s <= self.now_s:
                self._arrive(self.now_s)
            if self.now_s >= self._change_s:
                self._change()
            if self._debt_s:
                self.now_s += self._debt_s / self._speed
                self._debt_s = 0.0
            elif self._ready:
                self._activate(by_bit[pick(self._ready)])
            else:
                self.now_s = min(until_s, self._timeline.next_s)
        self._arrive(until_s)
        self._time_s = until_s

    def _open_timeline(self, until_s: float) -> None:
        parts = [i.admit_until(until_s, self._rules[i.gate]) for i in self.inputs]
        kept = np.sort(np.concatenate([part[0] for part in parts]))
        dropped = np.sort(np.concatenate([part[1] for part in parts]))
        for source, part in zip(self.inputs, parts, strict=True):
            source.shed += part[1].size
        times_s = self.log.arrived_s
        self._timeline = Timeline(kept.tolist(), times_s[kept].tolist(), times_s[dropped].tolist())

    def _arrive(self, now_s: float) -> None:
        ids, dropped = self._timeline.until(now_s)
        self._debt_s += dropped * self.engine.shed_cost_s
        if not ids:
            return
        if len(self.inputs) == 1:
            self.inputs[0].put(ids)
            self._forward(self.inputs[0])
            return
        by_stream: dict[int, list[int]] = {}
        for tuple_id in ids:
            by_stream.setdefault(self._stream_of[tuple_id], []).append(tuple_id)
        for stream, own in by_stream.items():
            self.inputs[stream].put(own)
            self._forward(self.inputs[stream])

    def _forward(self, source: Input) -> None:
        """From the input buffer into the readers' queues, as far as there is room in all."""
        room = self.engine.queue_tuples - max(map(len, source.queues))
        if room <= 0:
            return
        ids = source.take(room)
        for queue in source.queues:
            queue.extend(ids)
        self._ready |= source.readers_mask

    def _change(self) -> None:
        now_s, disturbances = self.now_s, self._disturbances
        self._factor = disturbances.cost_factor.at(now_s)
        self._speed = self.engine.headroom * (1.0 - disturbances.background.at(now_s))
        self._change_s = disturbances.next_change_s(now_s)

    def _activate(self, node: Node) -> None:
        """One turn of one operator: take a batch, pay for it, hand the results on."""
        queue, readers = node.queue, node.readers
        length = len(queue)
        count = length if length < node.turn_tuples else node.turn_tuples
        for reader in readers:
            if reader.capacity - len(reader.queue) < count * node.most_results:
                count = self._fitting(node, reader)
                if not count:
                    return
        taken = queue[:count]
        del queue[:count]
        spent_s = node.activation_s + node.cost_s * self._factor * count
        self.now_s += (spent_s + self._overhead_s) / self._speed
        results = node.work(taken, self.now_s)
        node.activations += 1
        node.processed += count
        node.produced += len(results)
        node.busy_s += spent_s
        self._charge(node.bit, spent_s)
        if not queue:
            self._ready ^= node.mask  # it was picked, so its bit is set
        if results:
            if node.crossings:
                self._cross(node, results)
            elif readers:
                for reader in readers:
                    reader.queue.extend(results)
                    self._ready |= reader.mask
                if len(readers) > 1:
                    self.log.fork(results, len(readers) - 1)
            else:
                self.log.leave(results, self.now_s, node.exit_code + 1)
        if node.blocked:
            self._ready |= node.blocked
            node.blocked = 0
        if length >= node.capacity and node.source is not None and node.source.waiting:
            self._forward(node.source)

    def _cross(self, node: Node, results: list[int]) -> None:
        """Hand on through the gates of other classes; shed copies are gone."""
        own = node.operator.class_name
        for reader in node.readers:
            if reader.operator.class_name == own:
                reader.queue.extend(results)
                self._ready |= reader.mask
        for crossing in node.crossings:
            kept, shed = crossing.cross(results, self._rules[crossing.class_name])
            for queue in crossing.queues:
                queue.extend(kept)
                if shed:
                    self.log.leave(shed, self.now_s, SHED)
            if kept:
                self._ready |= crossing.readers_mask
            self._debt_s += len(shed) * self.engine.shed_cost_s
        if len(node.readers) > 1:
            self.log.fork(results, len(node.readers) - 1)

    def _fitting(self, node: Node, reader: Node) -> int:
        """How many tuples can be taken so that the results fit; 0: blocked until `reader` runs."""
        count = (reader.capacity - len(reader.queue)) // node.most_results
        if count > 0:
            return count
        if not reader.queue:
            return 1  # more results than any queue holds: one tuple at a time
        self._ready ^= node.mask
        reader.blocked |= node.mask
        return 0

    # -- the plant's two ends of the control loop

    def observe(self) -> Iterator[Measurement]:
        """One measurement per class, of what happened since the last call."""
        return iter(self._monitor.measure(self._time_s))

    def act(self, measurement: Measurement, decision: Decision) -> None:
        self.actuate(measurement.class_name, decision)

    def actuate(self, class_name: str, decision: Decision) -> None:
        state, action = self.classes[class_name], decision.action
        state.decision = decision
        inputs = [source for source in self.inputs if source.class_name == class_name]
        if any(source.buffered for source in inputs):
            self._keep_of_backlog(state, inputs, action)
        elif isinstance(action, KeepFraction):
            fraction = min(1.0, max(1.0 - self.engine.max_shed, action.fraction))
            state.keep_fraction = fraction
            self._keep(class_name, fraction)

    def _keep(self, gate: str, fraction: float) -> None:
        self._rules[gate] = UniformRule(keep_ppm=round(fraction * PPM), seed=self._seed)

    def _keep_of_backlog(self, state: ClassState, inputs: list[Input], action: Action) -> None:
        """Keep a random choice of what waits in the input buffers; every tuple is looked at."""
        pending = sum(source.pending for source in inputs)
        least = ceil((1.0 - self.engine.max_shed) * pending)
        if isinstance(action, KeepFraction):
            keep = max(least, ceil(action.fraction * pending))
        else:
            keep = max(least, action.tuples)
        self._debt_s += pending * self.engine.shed_cost_s  # dissp paper eq. 1: N c_s
        state.keep_fraction = min(1.0, keep / pending) if pending else 1.0
        if keep < pending:
            keep_at_random(inputs, keep, self._rng)

    def set_target(self, class_name: str, target: Target) -> None:
        self._monitor.settle()
        self.classes[class_name].target = target

    def counts(self, class_name: str) -> Counts:
        """Running counts, up to the last observation."""
        return self._monitor.counts(class_name)

    def totals(self, class_name: str) -> Totals:
        """Where every tuple of a class is, counted from the queues themselves."""
        return self._monitor.totals(class_name)
