"""What the load manager of a class sees: counts, queues, loads and delays of one period."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spillway.model import Measurement
from spillway_lab.engine.departures import DepartureLog, Departures
from spillway_lab.engine.inputs import Crossing, Input, backlog_of
from spillway_lab.engine.network import Network, load_coefficients
from spillway_lab.engine.operators import Node
from spillway_lab.engine.state import ClassState, Counts
from spillway_lab.engine.statistics import Floats, Ints, Totals


class Monitor:
    """Turns queues, operator statistics and the departure log into measurements.

    Costs and selectivities are those measured in the period (an idle operator keeps its last
    ones), so the load follows batching and rate as it does for a real monitor.
    """

    def __init__(
        self,
        network: Network,
        nodes: Sequence[Node],
        inputs: Sequence[Input],
        log: DepartureLog,
        classes: Mapping[str, ClassState],
        every_tuple: bool,
    ) -> None:
        self._network, self._nodes = network, nodes
        self._inputs = {
            name: [source for source in inputs if source.class_name == name] for name in classes
        }
        self._log, self._classes, self._every_tuple = log, classes, every_tuple
        self._cost_s = [node.cost_s for node in nodes]
        self._full_batch_s = [_at_full_batches(node, node.cost_s) for node in nodes]
        self._activations = [0] * len(nodes)  # up to the last measurement
        self._results = [node.operator.results_per_tuple for node in nodes]
        self._class_of = np.zeros(log.arrived_s.size, dtype=np.int8)
        for i, name in enumerate(classes):
            for source in self._inputs[name]:
                self._class_of[source.ids] = i
        self._time_s = 0.0
        self.executions = 0  # up to the last measurement
        self._finished_before = dict.fromkeys(classes, 0)

    def settle(self) -> None:
        """Book everything that left the network since the last call."""
        departures = self._log.settle()
        if not departures.ids.size:
            return
        owners = self._class_of[departures.finished]
        for i, state in enumerate(self._classes.values()):
            put_out = departures.exits == 2 * i + 1
            finished = departures.finished[owners == i]
            state.departed += int(np.count_nonzero(departures.exits // 2 == i))
            state.outputs += int(np.count_nonzero(put_out))
            state.finished += finished.size
            state.completed(*self._completed(departures, finished, put_out))

    def _completed(
        self, departures: Departures, finished: Ints, put_out: npt.NDArray[np.bool]
    ) -> tuple[Floats, Floats]:
        log = self._log
        if self._every_tuple:
            return log.arrived_s[finished], log.departed_s[finished]
        return log.arrived_s[departures.ids[put_out]], departures.times_s[put_out]

    def measure(self, time_s: float) -> list[Measurement]:
        self.settle()
        for i, node in enumerate(self._nodes):
            if node.processed:
                self._cost_s[i] = node.busy_s / node.processed
                self._results[i] = node.produced / node.processed
                price_s = (node.activations - self._activations[i]) * node.activation_s
                per_tuple_s = (node.busy_s - price_s) / node.processed
                self._full_batch_s[i] = _at_full_batches(node, per_tuple_s)
            self._activations[i] = node.activations
        coefficients = load_coefficients(self._network, self._cost_s, self._results)
        self._measure_full_batches(period_s=time_s - self._time_s)
        period_s, self._time_s = time_s - self._time_s, time_s
        found = [
            self._measure(state, coefficients, time_s, period_s) for state in self._classes.values()
        ]
        for node in self._nodes:
            self.executions += node.processed
            node.processed = node.produced = 0
            node.busy_s = 0.0
        return found

    def _measure_full_batches(self, period_s: float) -> None:
        """What every class's offered load would be if all its activations were full."""
        coefficients = load_coefficients(self._network, self._full_batch_s, self._results)
        for name, state in self._classes.items():
            load_s = sum(s.offered_now * self._entry_s(s, coefficients) for s in self._inputs[name])
            state.full_batch_load = load_s / period_s if period_s > 0.0 else 0.0

    def _measure(
        self, state: ClassState, coefficients: list[float], time_s: float, period_s: float
    ) -> Measurement:
        inputs = self._inputs[state.name]
        counts = [source.since_last() for source in inputs]
        entry_s = [self._entry_s(source, coefficients) for source in inputs]
        for source, count, cost_s in zip(inputs, counts, entry_s, strict=True):
            source.load_s = count.offered * cost_s
        offered_s = sum(source.load_s for source in inputs)
        admitted_s = sum(c.admitted * e for c, e in zip(counts, entry_s, strict=True))
        offered = sum(count.offered for count in counts)
        rate = 1.0 / period_s if period_s > 0.0 else 0.0
        if offered:
            state.cost_s = offered_s / offered
        elif state.cost_s == 0.0 and inputs:
            state.cost_s = sum(entry_s) / len(inputs)
        self._measure_queue(state, entry_s, coefficients)
        pending = [tuple_id for source in inputs for tuple_id in source.pending_ids()]
        return Measurement(
            time_s=time_s,
            period_s=period_s,
            target=state.target,
            offered_tuples=offered,
            admitted_tuples=sum(count.admitted for count in counts),
            shed_tuples=sum(count.shed for count in counts),
            completed_tuples=self._newly_finished(state),
            queued_tuples=state.queued_tuples,
            queued_load_s=state.queued_load_s,
            offered_load=offered_s * rate,
            admitted_load=admitted_s * rate,
            cost_s=state.cost_s,
            delay_s=state.statistic_s(),
            busy_s=sum(n.busy_s for n in self._nodes if n.operator.class_name == state.name),
            backlog=backlog_of(self._log.arrived_s[pending], time_s, state.target),
            headroom=state.assigned_headroom,
            class_name=state.name,
        )

    def _newly_finished(self, state: ClassState) -> int:
        finished = state.finished - self._finished_before[state.name]
        self._finished_before[state.name] = state.finished
        return finished

    def _measure_queue(
        self, state: ClassState, entry_s: list[float], coefficients: list[float]
    ) -> None:
        """The virtual queue, and thesis eq. 4.1 over operators' queues and input buffers."""
        inputs = self._inputs[state.name]
        passed = sum(source.offered - source.shed for source in inputs)
        state.queued_tuples = max(0, passed - state.departed)
        inside_s = sum(
            len(node.queue) * coefficients[i]
            for i, node in enumerate(self._nodes)
            if node.queue and node.operator.class_name == state.name
        )
        before_s = sum(s.waiting * e for s, e in zip(inputs, entry_s, strict=True))
        state.queued_load_s = inside_s + before_s

    def _entry_s(self, source: Input, coefficients: list[float]) -> float:
        """Load coefficient of a stream: the sum over the readers of its own class."""
        operators = self._network.operators
        readers = self._network.readers(source.name)
        own = [r for r in readers if operators[r].class_name == source.class_name]
        return sum(coefficients[reader] for reader in own)

    def counts(self, class_name: str) -> Counts:
        inputs, state = self._inputs[class_name], self._classes[class_name]
        return Counts(
            offered=sum(source.offered for source in inputs),
            admitted=sum(source.admitted for source in inputs),
            shed=sum(source.shed for source in inputs),
            completed=state.finished,
            outputs=state.outputs,
        )

    def totals(self, class_name: str) -> Totals:
        """Of a class's own streams, counted from the queues, not from differences of counters."""
        self.settle()
        inputs = [s for s in self._inputs[class_name] if not isinstance(s, Crossing)]
        inside: set[int] = set()
        for node in self._nodes:
            inside.update(node.queue, node.held())
        own = self._class_of[list(inside)] == list(self._classes).index(class_name)
        return Totals(
            offered_tuples=sum(source.offered for source in inputs),
            admitted_tuples=sum(source.admitted for source in inputs),
            shed_tuples=sum(source.shed for source in inputs),
            pending_tuples=sum(source.pending for source in inputs),
            in_flight_tuples=int(own.sum()) + sum(s.waiting - s.pending for s in inputs),
            completed_tuples=self._classes[class_name].finished,
        )


def _at_full_batches(node: Node, per_tuple_s: float) -> float:
    return per_tuple_s + node.activation_s / node.turn_tuples
