"""Who leads, pure: one coordinator of several, by a leased record in the log of assignments.

What a leader writes is safe without the lease: every append expects the position up to which the
writer has read, so of two that both believe they lead, one fails and reads on. The lease only keeps
stand-bys from taking over all the time.
"""

from typing import Literal

from spillway.coding import from_json, to_json
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.leases import Sightings
from spillway.hosts.cluster.messages import LEADER, Leadership
from spillway.hosts.cluster.records import Record

Role = Literal["leads", "stands by"]
RENEWALS = 3  # in a lease


class Election:
    """One coordinator's part. All times are of its own monotonic clock."""

    def __init__(self, me: str, cluster: str, lease_s: float, host: str = "") -> None:
        self.me, self._cluster, self._lease_s, self._host = me, cluster, lease_s, host
        self._sightings = Sightings()
        self._sent_s = float("-inf")
        self._has_looked = False
        self.has_ended = False  # the cluster was stopped while this one stood by

    def next_record(self, log: Latest, began_s: float, read_s: float) -> Record | None:
        """After a reading of the log from `began_s` to `read_s`: what to append to lead on, or to
        begin; None: nothing now."""
        placed, first_look = log.by_key.get(LEADER), not self._has_looked
        self._has_looked = True
        if placed is None:
            return self._claim(1)
        now = from_json(Leadership, placed.record.body or {})
        if now.ended:
            self.has_ended = not first_look
            return self._claim(placed.record.epoch + 1) if first_look else None
        if now.leader == self.me:
            due = read_s >= self._sent_s + self._lease_s / RENEWALS
            return self._renewal(placed.record.epoch, now.beat + 1) if due else None
        self._sightings.read(now.leader, placed.position, now.lease_s, read_s)
        over = self._sightings.is_over(now.leader, began_s)
        return self._claim(placed.record.epoch + 1) if over else None

    def role(self, log: Latest) -> Role:
        placed = log.by_key.get(LEADER)
        mine = placed is not None and (placed.record.body or {}).get("leader") == self.me
        return "leads" if mine else "stands by"

    def sent(self, now_s: float) -> None:
        """The record is in the log; it was sent then."""
        self._sent_s = now_s

    def resigned(self, log: Latest, *, ended: bool) -> Record:
        """The last word: another may lead at once, or, where the cluster has ended, nobody."""
        epoch = log.by_key[LEADER].record.epoch
        word = Leadership(leader="", lease_s=0.0, ended=ended, host=self._host)
        return self._record(epoch, word)

    def _claim(self, epoch: int) -> Record:
        return self._renewal(epoch, 0)

    def _renewal(self, epoch: int, beat: int) -> Record:
        word = Leadership(leader=self.me, lease_s=self._lease_s, beat=beat, host=self._host)
        return self._record(epoch, word)

    def _record(self, epoch: int, word: Leadership) -> Record:
        return Record(
            cluster=self._cluster,
            key=LEADER,
            epoch=epoch,
            writer=self.me,
            body=to_json(Leadership, word),
        )
