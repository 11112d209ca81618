"""How many executors were asked for, which are there, and what the cluster cannot give."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spillway.cluster.actions import ClusterAction, StartNode, StopNode
from spillway.cluster.scaling.executors import Executor


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """So many in all, without these."""

    total: int
    leaving: tuple[str, ...] = ()
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What an observation showed."""

    lost: tuple[str, ...] = ()  # gone, and nobody had let them go
    missing: int = 0  # asked for in vain: said once
    request: Request | None = None  # what follows from it at once


class Fleet:
    """Keeps the total. A request that is not fulfilled within `patience_s` is withdrawn, and no
    more than what is there is asked for until `retry_s` have passed or more came by itself."""

    def __init__(
        self, least: int, most: int, *, patience_s: float, retry_s: float, warm_s: float = 0.0
    ) -> None:
        self._least, self._most, self._warm_s = least, most, warm_s
        self._patience_s, self._retry_s = patience_s, retry_s
        self.wanted = least
        self._there: frozenset[str] = frozenset()
        self._leaving: set[str] = set()
        self._came_s: dict[str, float] = {}  # those that were there from the beginning: not in it
        self._short_since_s: float | None = None
        self._ceiling: int | None = None  # what the cluster gave when it could give no more
        self._ceiling_until_s = 0.0

    def begin(self, executors: Collection[Executor]) -> Request:
        """With what is there, as far as it is allowed; the youngest go first."""
        names = [one.name for one in executors]
        self.wanted = min(max(self._least, len(names)), self._most)
        self._there = frozenset(names)
        return self._request(names[self.wanted :], f"{self._least} to {self._most} executors")

    @property
    def most(self) -> int:
        return self._most if self._ceiling is None else max(self._least, self._ceiling)

    def staying(self, executors: Iterable[Executor]) -> tuple[Executor, ...]:
        """Without those that are on their way out."""
        return tuple(one for one in executors if one.name not in self._leaving)

    def warm(self, executors: Iterable[Executor], now_s: float) -> tuple[Executor, ...]:
        """Of those that stay, the ones that have been there for a while; all, if none has."""
        staying = self.staying(executors)
        return tuple(one for one in staying if self._is_warm(one, now_s)) or staying

    def is_cold(self, executors: Iterable[Executor], now_s: float) -> bool:
        """Whether some have just come: tuples look dear beside them."""
        return not all(self._is_warm(one, now_s) for one in executors)

    def _is_warm(self, one: Executor, now_s: float) -> bool:
        came_s = self._came_s.get(one.name)
        if came_s is None:  # there from the beginning, or not yet noticed
            return one.name in self._there
        return now_s >= came_s + self._warm_s

    def coming(self, there: int) -> int:
        return max(0, self.wanted - there)

    def observe(self, executors: Collection[Executor], now_s: float) -> Seen:
        names = frozenset(one.name for one in executors)
        lost = self._there - names - self._leaving
        self._came_s |= dict.fromkeys(names - self._there, now_s)
        self._there, self._leaving = names, self._leaving & names
        there = len(names - self._leaving)
        if self._ceiling is not None and (now_s >= self._ceiling_until_s or there > self._ceiling):
            self._ceiling = None
        missing = self._given_up(there, now_s)
        return Seen(
            lost=tuple(sorted(lost)),
            missing=missing,
            request=self._corrected(executors, there, missing, bool(lost)),
        )

    def _corrected(
        self, executors: Collection[Executor], there: int, missing: int, lost: bool
    ) -> Request | None:
        if missing:
            return Request(total=self.wanted, reason=f"{missing} executors do not come")
        if there > self.wanted:  # some were on their way when the first request was made
            names = [one.name for one in self.staying(executors)]
            self.wanted = min(there, self._most)
            return self._request(names[self.wanted :], f"{there} executors have come")
        if lost:
            return Request(total=self.wanted, reason="what was lost is replaced")
        return None

    def decide(self, actions: Iterable[ClusterAction], now_s: float) -> Request | None:
        """The actions of one plan as one request; None where it comes to nothing."""
        actions = tuple(actions)
        starts = [one for one in actions if isinstance(one, StartNode)]
        stops = [one for one in actions if isinstance(one, StopNode) and one.node in self._there]
        leaving = [one.node for one in stops][: max(0, self.wanted - self._least)]
        total = min(self.wanted + len(starts) - len(leaving), self.most)
        if (not starts and not leaving) or total == self.wanted:
            return None
        self.wanted = total
        self._short_since_s = None
        return self._request(leaving, (starts or stops)[0].reason)

    def _request(self, leaving: Collection[str], reason: str) -> Request:
        self._leaving |= set(leaving)
        return Request(total=self.wanted, leaving=tuple(leaving), reason=reason)

    def _given_up(self, there: int, now_s: float) -> int:
        """How many are missing, at the moment when they are waited for no longer."""
        missing = self.coming(there)
        if missing == 0:
            self._short_since_s = None
            return 0
        if self._short_since_s is None:
            self._short_since_s = now_s
        said = self._ceiling is not None
        if said or now_s - self._short_since_s < self._patience_s:
            return 0
        self._ceiling, self._ceiling_until_s = there, now_s + self._retry_s
        self.wanted, self._short_since_s = max(self._least, there), None
        return missing
