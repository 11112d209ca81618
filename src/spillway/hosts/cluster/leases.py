"""Leases, by monotonic clocks only: what a node may do, and when others may judge it gone.

A node's life is a name that it makes up. Its lease runs for `lease_s` from the moment at which it
*sent* the last report that it knows to be in the log. Whoever judges counts from the moment at
which *it first read* that report, which is later, and judges only by a reading of the log that
began after lease and margin had passed. So when it judges, the lease has run out: any report that
would have renewed it in time would have been seen. One that came later did not renew the life
either, because a node that notices that its lease ran out, for whatever reason, ends that life and
begins another.

The margin is for clocks that run at different rates, not for clocks that are set differently.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

MARGIN = 0.1  # of a lease: clocks that differ by a tenth of a second in each second

MOST_BEFORE = 100  # lives that a report names


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """One stretch of time over which a node held its lease without a gap."""

    name: str
    before: tuple[str, ...]  # lives that the same process has ended
    until_s: float  # monotonic; -inf before the first report is in the log


class NodeLease:
    """A node's own account. All times are of its host's monotonic clock."""

    def __init__(self, lease_s: float, new_name: Callable[[], str]) -> None:
        self.lease_s, self._new_name = lease_s, new_name
        self.life = Life(name=new_name(), before=(), until_s=float("-inf"))

    def holds(self, now_s: float) -> bool:
        return now_s <= self.life.until_s

    def lapsed(self, now_s: float) -> bool:
        """It was held, and is not any more."""
        return self.life.until_s > float("-inf") and not self.holds(now_s)

    def reported(self, life: str, sent_s: float, now_s: float) -> None:
        """A report of this life, sent then, is in the log as is known now."""
        if life != self.life.name or self.lapsed(now_s):
            return
        until_s = max(self.life.until_s, sent_s + self.lease_s)
        self.life = Life(name=life, before=self.life.before, until_s=until_s)

    def begin_anew(self) -> None:
        """After a lapse, once nothing of the old life runs any more."""
        before = (*self.life.before[1 - MOST_BEFORE :], self.life.name)
        self.life = Life(name=self._new_name(), before=before, until_s=float("-inf"))

    @property
    def lives(self) -> frozenset[str]:
        return frozenset((*self.life.before, self.life.name))


@dataclass(kw_only=True, slots=True)
class _Sighting:
    position: int
    first_read_s: float
    lease_s: float


class Sightings:
    """What one judge has read of others. All times are of its own monotonic clock."""

    def __init__(self) -> None:
        self._seen: dict[str, _Sighting] = {}

    def read(self, life: str, position: int, lease_s: float, read_s: float) -> None:
        """The newest report of a life, in a reading that ended then."""
        known = self._seen.get(life)
        if known is None or position > known.position:
            self._seen[life] = _Sighting(position=position, first_read_s=read_s, lease_s=lease_s)

    def assume(self, life: str, lease_s: float, read_s: float) -> None:
        """Of a life that holds something and was never read: its report may have been compacted
        away, or be still to come. It counts from now."""
        self._seen.setdefault(life, _Sighting(position=-1, first_read_s=read_s, lease_s=lease_s))

    def refresh(self, read_s: float) -> None:
        """Reports may have gone unread, so that nothing is known of what is older than now."""
        for seen in self._seen.values():
            seen.first_read_s = read_s

    def is_over(self, life: str, began_s: float) -> bool:
        """By a reading that began then and ended at the log's end. Of a life that was never read
        nothing can be said: it is not over."""
        known = self._seen.get(life)
        return known is not None and began_s > known.first_read_s + (1 + MARGIN) * known.lease_s

    def forget_all_but(self, lives: Collection[str]) -> None:
        self._seen = {life: seen for life, seen in self._seen.items() if life in lives}
