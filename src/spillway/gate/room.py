"""What a target leaves for a batch, and which target shedding can hold at all."""

from dataclasses import dataclass, replace

from spillway.model import Target

LONG = 5.0  # fixed prices: of batches as long as that little is lost to them
_AGAIN = 0.8  # of the length: a fixed price below that makes a target reachable again


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Batches every `interval_s` that take `length_s`: a delay of p interval + length."""

    interval_s: float
    length_s: float

    @classmethod
    def of(cls, target: Target, turn: float, trigger_s: float | None = None) -> "Room":
        """With a trigger interval batches come no more often than that, unless they overrun it."""
        interval_s = target.delay_s / (target.age_share + turn)
        if trigger_s is None or trigger_s <= interval_s:
            return cls(interval_s=interval_s, length_s=turn * interval_s)
        length_s = target.delay_s - target.age_share * trigger_s
        return cls(interval_s=trigger_s, length_s=max(0.0, length_s))

    def widened(self, fixed_s: float) -> "Room":
        """The same where little is lost to a fixed price like that."""
        if self.length_s <= 0.0:
            interval_s = max(self.interval_s, LONG * fixed_s)
            return Room(interval_s=interval_s, length_s=interval_s)
        wider = max(1.0, LONG * fixed_s / self.length_s)
        return Room(interval_s=wider * self.interval_s, length_s=wider * self.length_s)


class Reach:
    """The target that is steered by: the one that was asked for, where shedding can hold it.

    A batch without a tuple in it takes its fixed price, and with a trigger interval tuples wait for
    the next tick. Where that alone breaks the target, nothing is shed for it: a load that can be
    carried is carried, late. A load that cannot is held to the shortest delay at which little is
    lost to fixed prices.
    """

    def __init__(self, trigger_s: float | None) -> None:
        self._trigger_s = trigger_s
        self.why_not = ""  # said of the target that was asked for

    def of(self, asked: Target, turn: float, fixed_s: float) -> Target:
        """`fixed_s` is what a batch certainly takes without a tuple."""
        room = Room.of(asked, turn, self._trigger_s)
        if fixed_s < room.length_s * (_AGAIN if self.why_not else 1.0):
            self.why_not = ""
            return asked
        wider = room.widened(fixed_s)
        held = replace(asked, delay_s=asked.age_share * wider.interval_s + wider.length_s)
        self.why_not = f"{self._arithmetic(asked, fixed_s, room)}: {held} is held instead"
        return held

    def _arithmetic(self, asked: Target, fixed_s: float, room: Room) -> str:
        if room.length_s > 0.0:
            return (
                f"{asked} cannot hold: a batch takes {fixed_s:.2g} s without a tuple, the target"
                f" allows {room.length_s:.2g} s"
            )
        waits_s = asked.age_share * room.interval_s
        return (
            f"{asked} cannot hold: with a trigger every {room.interval_s:g} s tuples wait"
            f" {waits_s:.2g} s for the next batch alone"
        )
