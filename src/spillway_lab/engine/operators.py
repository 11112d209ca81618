"""Operators at work: each kind turns the tuples of one activation into its results."""

from collections import deque
from itertools import compress

from spillway_lab.engine.departures import DepartureLog
from spillway_lab.engine.draws import Draws
from spillway_lab.engine.inputs import Crossing, Input
from spillway_lab.engine.network import Operator


class Node:
    """An operator with its queue. This kind lets everything pass."""

    def __init__(self, operator: Operator, log: DepartureLog) -> None:
        self.operator = operator
        self.log = log
        self.queue: list[int] = []
        self.readers: list[Node] = []
        self.crossings: list[Crossing] = []  # gates in front of readers of other classes
        self.source: Input | None = None
        self.cost_s = operator.cost_s
        self.activation_s = 0.0
        self.most_results = 1  # per tuple
        self.capacity = 1
        self.turn_tuples = 1
        self.bit = 0
        self.mask = 1
        self.blocked = 0  # bits of the operators that wait for room in this queue
        self.exit_code = 0
        self.activations = 0
        self.processed = 0  # since the last measurement, like the following two
        self.produced = 0
        self.busy_s = 0.0

    def work(self, taken: list[int], now_s: float) -> list[int]:
        """Results of an activation that ends now; what is discarded is logged."""
        return taken

    def held(self) -> tuple[int, ...]:
        """Tuples in the operator's own state."""
        return ()


class FilterNode(Node):
    """Each tuple passes with the operator's selectivity."""

    def __init__(self, operator: Operator, log: DepartureLog, draws: Draws) -> None:
        super().__init__(operator, log)
        self._draws = draws
        self._passes: list[bool] = []  # drawn in advance, for whole blocks of tuples
        self._fails: list[bool] = []
        self._next = 0

    def work(self, taken: list[int], now_s: float) -> list[int]:
        start = self._next
        stop = start + len(taken)
        if stop > len(self._passes):
            self._draw(start, len(taken))
            start, stop = 0, len(taken)
        self._next = stop
        passed = list(compress(taken, self._passes[start:stop]))
        if len(passed) < len(taken):
            failed = list(compress(taken, self._fails[start:stop]))
            self.log.leave(failed, now_s, self.exit_code)
        return passed

    def _draw(self, used: int, needed: int) -> None:
        fresh = self._draws.block(needed) < self.operator.selectivity
        self._passes = self._passes[used:] + fresh.tolist()
        self._fails = self._fails[used:] + (~fresh).tolist()


class JoinNode(Node):
    """More or less than one result per tuple; with a range window, in proportion to its content."""

    def __init__(self, operator: Operator, log: DepartureLog, draws: Draws) -> None:
        super().__init__(operator, log)
        self._draws = draws
        self._window = operator.window
        self._recent: deque[tuple[float, int]] = deque()
        self._content = 0
        self._selectivity = 0.0 if operator.window else operator.selectivity
        self.most_results = int(self._selectivity) + 1

    def work(self, taken: list[int], now_s: float) -> list[int]:
        if self._window is not None:
            self._slide(0, now_s)
        whole = int(self._selectivity)
        part = self._selectivity - whole
        results: list[int] = []
        unmatched: list[int] = []
        for tuple_id, number in zip(taken, self._draws.take(len(taken)), strict=True):
            matches = whole + (number < part)
            if not matches:
                unmatched.append(tuple_id)
                continue
            results.extend([tuple_id] * matches)
            if matches > 1:
                self.log.fork([tuple_id], matches - 1)
        if unmatched:
            self.log.leave(unmatched, now_s, self.exit_code)
        if self._window is not None:
            self._slide(len(taken), now_s)
        return results

    def _slide(self, count: int, now_s: float) -> None:
        assert self._window is not None
        recent = self._recent
        if count:
            recent.append((now_s, count))
            self._content += count
        while recent and recent[0][0] <= now_s - self._window.seconds:
            self._content -= recent.popleft()[1]
        self._selectivity = self.operator.selectivity * self._content / self._window.tuples
        self.most_results = int(self._selectivity) + 1


class RowsNode(Node):
    """A row window: every `rows` tuples give one result, which carries one tuple's arrival on.

    The others leave here. The carrier is the first of the window, which is its oldest input
    (dissp paper section 2), or the one that completes it (thesis).
    """

    def __init__(self, operator: Operator, log: DepartureLog, oldest: bool) -> None:
        super().__init__(operator, log)
        self._oldest = oldest
        self._inside = 0  # tuples in the window that is being filled
        self._carrier: tuple[int, ...] = ()

    def work(self, taken: list[int], now_s: float) -> list[int]:
        rows, before = self.operator.rows, self._inside
        first = -before % rows if self._oldest else rows - 1 - before
        carriers = taken[first::rows]
        del taken[first::rows]
        if taken:
            self.log.leave(taken, now_s, self.exit_code)
        full, self._inside = divmod(before + len(taken) + len(carriers), rows)
        if not self._oldest:
            return carriers
        carriers[:0] = self._carrier
        self._carrier = tuple(carriers[full:])
        return carriers[:full]

    def held(self) -> tuple[int, ...]:
        return self._carrier


def make_node(operator: Operator, index: int, log: DepartureLog, seed: int, oldest: bool) -> Node:
    if operator.rows > 1:
        return RowsNode(operator, log, oldest)
    if operator.window is not None or operator.selectivity > 1.0:
        return JoinNode(operator, log, Draws(seed, index))
    if operator.selectivity < 1.0:
        return FilterNode(operator, log, Draws(seed, index))
    return Node(operator, log)
