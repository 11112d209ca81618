"""The share that was in force while tuples arrived.

A load manager of a control period sets a share of what arrives. On Spark tuples are dropped later,
when a batch is planned: gates plan at different moments, and one with long batches plans just when
its delay has been reported and the share is lowest. The mean over the time since its last batch is
what an entry shedder would have kept of the same tuples, so all gates lose alike.
"""


class KeptShare:
    def __init__(self) -> None:
        self._share = 1.0
        self._integral_s = 0.0
        self._until_s: float | None = None
        self._planned: dict[str, tuple[float, float]] = {}  # gate -> (time, integral)

    def set(self, share: float, now_s: float) -> None:
        self._advance(now_s)
        self._share = share

    def since_last_batch(self, gate: str, now_s: float) -> float:
        """The mean share since this was last asked for the gate."""
        self._advance(now_s)
        before = self._planned.get(gate)
        self._planned[gate] = now_s, self._integral_s
        if before is None or now_s <= before[0]:
            return self._share
        return (self._integral_s - before[1]) / (now_s - before[0])

    def leave(self, gate: str) -> None:
        self._planned.pop(gate, None)

    def _advance(self, now_s: float) -> None:
        if self._until_s is not None:
            self._integral_s += self._share * max(0.0, now_s - self._until_s)
        self._until_s = now_s
