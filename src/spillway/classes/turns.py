"""Whose turn it is to start a micro-batch: the class scheduler over queries that ask. Pure.

There are as many slots as batches may be in flight. A query that has pending tuples asks, and is
granted a slot when its turn comes; the slot is free again when its batch has ended or it is gone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spillway.classes.scheduler import ClassScheduler


def batches_in_flight(cores: int, priorities: Collection[int]) -> int:
    """As many as there are cores; where priorities differ one more, for the highest alone."""
    return cores + (len(set(priorities)) > 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """A query that waits for its turn."""

    query: str
    class_name: str
    output_rate: float  # tuples kept per second of batch time
    since_s: float
    asked_s: float
    from_s: float = 0.0  # not before: its class is slowed down within its target

    def is_held(self, now_s: float) -> bool:
        """Also ends when the clock is set back."""
        return self.asked_s <= now_s < self.from_s


class Turns:
    """Grants slots by class quota; inside a class the highest output rate goes first.

    A query that has waited longer than `patience_s` overtakes faster ones of its class, so that
    none starves. The last slot of several is for the class `first` alone: a batch cannot be
    interrupted, so the highest class would otherwise have to wait for the end of a long one.

    Idle time goes to whoever asks, unless `lends` is off: then a class uses no more than its quota
    of the machine (the slots that are open to all), and what it leaves stays unused.
    """

    def __init__(
        self,
        quotas: Mapping[str, float],
        *,
        slots: int,
        now_s: float,
        first: str | None = None,
        patience_s: float = 1.0,
    ) -> None:
        self.first = first
        self.lends = True
        self.slots = slots
        self.withheld = 0  # so many slots fewer for the classes that are not spared
        self.spared: frozenset[str] = frozenset()
        self._scheduler = ClassScheduler(quotas)
        self._patience_s = patience_s
        self._allowed_s = dict.fromkeys(quotas, 0.0)  # batch time, where nobody lends
        self._allowed_at_s = now_s
        self._running: dict[str, str] = {}  # query -> class
        self._asking: dict[str, Asking] = {}
        self._since_s: dict[str, float] = {}  # a query that asks again keeps its place

    @property
    def quotas(self) -> Mapping[str, float]:
        return self._scheduler.quotas

    @property
    def idle(self) -> bool:
        return not self._running

    def set_quotas(self, quotas: Mapping[str, float]) -> None:
        self._scheduler.set_quotas(quotas)
        for name in quotas:
            self._allowed_s.setdefault(name, 0.0)

    def withhold(self, slots: int) -> None:
        """One slot always stays."""
        self.withheld = min(max(0, slots), max(0, self.slots - 2))

    def is_running(self, query: str) -> bool:
        return query in self._running

    def is_asking(self, query: str) -> bool:
        return query in self._asking

    def ask(
        self, query: str, class_name: str, output_rate: float, now_s: float, from_s: float = 0.0
    ) -> None:
        """Wait in line. Whoever is granted a slot is no longer asking."""
        # Nobody has waited since a moment that a clock set back now calls the future.
        self._since_s[query] = min(now_s, self._since_s.get(query, now_s))
        self._asking[query] = Asking(
            query=query,
            class_name=class_name,
            output_rate=output_rate,
            since_s=self._since_s[query],
            asked_s=now_s,
            from_s=from_s,
        )

    def withdraw(self, query: str) -> None:
        """It will ask again, and keeps its place until then."""
        self._asking.pop(query, None)

    def ended(self, query: str, busy_s: float) -> None:
        """Its batch has ended: its slot is free."""
        class_name = self._running.pop(query, None)
        if class_name is not None:
            self._scheduler.charge(class_name, busy_s)
            if not self.lends:  # what was borrowed is not asked back
                self._allowed_s[class_name] -= busy_s

    def leave(self, query: str) -> None:
        """It is gone: whatever it held or waited for is free."""
        self.withdraw(query)
        self._since_s.pop(query, None)
        self.ended(query, 0.0)

    def grant(self, now_s: float) -> list[str]:
        """Who may start now."""
        granted = []
        while (class_name := self._scheduler.next(self._admissible(now_s))) is not None:
            query = self._next_of(class_name, now_s)
            self._running[query] = class_name
            del self._since_s[query], self._asking[query]
            granted.append(query)
        return granted

    def next_s(self, now_s: float) -> float | None:
        """When time alone may make somebody eligible; None: only an end of a batch can."""
        waiting = [asking.from_s for asking in self._asking.values() if asking.is_held(now_s)]
        if not self.lends and self._asking:
            waiting.append(now_s + 0.02)
        return min(waiting, default=None)

    def _admissible(self, now_s: float) -> set[str]:
        """The classes that ask and for which a slot is free."""
        free = self.slots - len(self._running)
        asking = {a.class_name for a in self._asking.values() if not a.is_held(now_s)}
        if not self.lends:
            self._allow(now_s)
            asking = {name for name in asking if self._allowed_s[name] > 0.0}
        if free <= 0:
            return set()
        if self.first is None or self._open_slots == self.slots:
            return asking
        others = [name for name in self._running.values() if name != self.first]
        if len(others) >= self._open_slots:
            return asking & {self.first}
        if sum(name not in self.spared for name in others) >= self._open_slots - self.withheld:
            return asking & {self.first, *self.spared}
        return asking

    @property
    def _open_slots(self) -> int:
        """Open to all classes: without the highest one's own, unless there is only one."""
        return self.slots - (self.first is not None and self.slots > 1)

    def _allow(self, now_s: float) -> None:
        """Every class earns its quota of the machine; it saves up no more than a second's worth."""
        elapsed_s, self._allowed_at_s = now_s - self._allowed_at_s, now_s
        for name, quota in self.quotas.items():
            earned_s = self._allowed_s[name] + quota * self._open_slots * max(0.0, elapsed_s)
            self._allowed_s[name] = min(earned_s, quota * self._open_slots)

    def _next_of(self, class_name: str, now_s: float) -> str:
        def rank(asking: Asking) -> tuple[bool, float, str]:
            patient = now_s - asking.since_s < self._patience_s
            return patient, -asking.output_rate if patient else asking.since_s, asking.query

        return min(self._of(class_name, now_s), key=rank).query

    def _of(self, class_name: str, now_s: float) -> Collection[Asking]:
        everybody = self._asking.values()
        return [a for a in everybody if a.class_name == class_name and not a.is_held(now_s)]
