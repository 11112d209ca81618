"""Who may start a micro-batch: the class scheduler at work on Spark's gates.

A gate that has pending tuples asks for a slot and is held until its turn comes. There are as many
slots as batches may be in flight; a slot is given back when the gate reports again (its batch has
ended) or is gone.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from spillway.classes.scheduler import ClassScheduler
from spillway.clock import Clock

ALLOWANCE_STEP_S = 0.02


@dataclass(kw_only=True)
class _Request:
    class_name: str
    output_rate: float
    since_s: float
    granted: threading.Event = field(default_factory=threading.Event)


class Dispatcher:
    """Grants slots by class quota; inside a class the highest output rate goes first.

    Output rate is tuples kept per second of batch time. A gate that has waited longer than
    `patience_s` overtakes faster ones of its class, so that none starves. The last slot is for the
    class `first` alone: a batch cannot be interrupted, so the highest class would otherwise have
    to wait for the end of a long one.

    Idle time goes to whoever asks, unless `set_lending(False)`: then a class uses no more than its
    quota of the machine (the slots that are open to all), and what it leaves stays unused.
    """

    def __init__(
        self,
        scheduler: ClassScheduler,
        clock: Clock,
        *,
        slots: int,
        first: str | None = None,
        patience_s: float = 1.0,
    ) -> None:
        self._first = first
        self._scheduler = scheduler
        self._clock = clock
        self._slots = slots
        self._withheld = 0
        self._spared: frozenset[str] = frozenset()
        self._patience_s = patience_s
        self._lends = True
        self._allowed_s = dict.fromkeys(scheduler.quotas, 0.0)  # batch time, where nobody lends
        self._allowed_at_s = clock.now_s()
        self._running: dict[str, str] = {}  # gate -> class
        self._requests: dict[str, _Request] = {}
        self._waiting_since_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()

    def request(
        self, gate: str, class_name: str, output_rate: float, wait_s: float, busy_s: float = 0.0
    ) -> bool:
        """Wait up to `wait_s` for a slot; True when the gate may start.

        `busy_s` is the time of the batch that has just ended. Its slot is freed in the same step,
        so that the gate competes for it: otherwise whoever waits would always get it.
        """
        with self._lock:
            self._release(gate, busy_s)
            since_s = self._waiting_since_s.setdefault(gate, self._clock.now_s())
            request = _Request(class_name=class_name, output_rate=output_rate, since_s=since_s)
            self._requests[gate] = request
            self._grant()
        self._wait(request, wait_s)
        with self._lock:
            self._requests.pop(gate, None)
            return request.granted.is_set()

    def _wait(self, request: _Request, wait_s: float) -> None:
        """Who lends grants when a batch ends; otherwise time alone can make a class eligible."""
        while not request.granted.wait(wait_s if self._lends else min(wait_s, ALLOWANCE_STEP_S)):
            wait_s -= ALLOWANCE_STEP_S
            if self._lends or wait_s <= 0.0:
                return
            with self._lock:
                self._grant()

    def finished(self, gate: str, busy_s: float) -> None:
        """The gate's batch has ended and it has nothing pending: its slot is free."""
        with self._lock:
            self._release(gate, busy_s)
            self._grant()

    def is_running(self, gate: str) -> bool:
        with self._lock:
            return gate in self._running

    @property
    def quotas(self) -> Mapping[str, float]:
        return self._scheduler.quotas

    def set_quotas(self, quotas: Mapping[str, float]) -> None:
        with self._lock:
            self._scheduler.set_quotas(quotas)

    def set_lending(self, lends: bool) -> None:
        with self._lock:
            self._lends = lends

    @property
    def withheld(self) -> int:
        return self._withheld

    def spare(self, classes: Collection[str]) -> None:
        """The classes that nothing is withheld from."""
        with self._lock:
            self._spared = frozenset(classes)

    def withhold(self, slots: int) -> None:
        """So many slots fewer for the classes that are not spared; one always stays."""
        with self._lock:
            self._withheld = min(max(0, slots), max(0, self._slots - 2))

    def set_first(self, class_name: str) -> None:
        """The class that has become the highest."""
        with self._lock:
            self._first = class_name

    def drain(self, wait_s: float) -> bool:
        """Grant no more slots, and wait until the batches in flight have ended; True when so."""
        with self._lock:
            self._slots = 0
        return self._idle.wait(wait_s)

    def leave(self, gate: str) -> None:
        """The gate is gone: whatever it held or waited for is free."""
        with self._lock:
            self._requests.pop(gate, None)
            self._waiting_since_s.pop(gate, None)
        self.finished(gate, 0.0)

    def _release(self, gate: str, busy_s: float) -> None:
        class_name = self._running.pop(gate, None)
        if class_name is not None:
            self._scheduler.charge(class_name, busy_s)
            self._allowed_s[class_name] -= busy_s
        if not self._running:
            self._idle.set()

    def _grant(self) -> None:
        while (class_name := self._scheduler.next(self._admissible())) is not None:
            gate = self._first_of(class_name)
            self._running[gate] = class_name
            self._idle.clear()
            del self._waiting_since_s[gate]
            self._requests.pop(gate).granted.set()

    def _admissible(self) -> set[str]:
        """The classes that ask and for which a slot is free."""
        free = self._slots - len(self._running)
        asking = {request.class_name for request in self._requests.values()}
        if not self._lends:
            self._allow()
            asking = {name for name in asking if self._allowed_s[name] > 0.0}
        if free <= 0:
            return set()
        if self._first is None:
            return asking
        others = [name for name in self._running.values() if name != self._first]
        if len(others) >= self._slots - 1:
            return asking & {self._first}
        if sum(name not in self._spared for name in others) >= self._slots - 1 - self._withheld:
            return asking & {self._first, *self._spared}
        return asking

    def _allow(self) -> None:
        """Every class earns its quota of the machine; it saves up no more than a second's worth."""
        now_s = self._clock.now_s()
        elapsed_s, self._allowed_at_s = now_s - self._allowed_at_s, now_s
        machine = self._slots - (self._first is not None)
        for name, quota in self._scheduler.quotas.items():
            earned_s = self._allowed_s[name] + quota * machine * max(0.0, elapsed_s)
            self._allowed_s[name] = min(earned_s, quota * machine)

    def _first_of(self, class_name: str) -> str:
        now_s = self._clock.now_s()

        def rank(gate: str) -> tuple[bool, float, str]:
            request = self._requests[gate]
            patient = now_s - request.since_s < self._patience_s
            return patient, -request.output_rate if patient else request.since_s, gate

        mine = (gate for gate, r in self._requests.items() if r.class_name == class_name)
        return min(mine, key=rank)
