"""Moves under way: waiting for their destination or their turn, running, done."""

from dataclasses import dataclass

from spillway_lab.simulated_cluster.moves import MoveProtocol


@dataclass
class Transfer:
    stage: int
    query: int
    source: int  # host slots
    destination: int
    ends_s: float | None = None  # None until it runs


class Transfers:
    """Which moves run when. Pausing moves off one host follow one another; others overlap."""

    def __init__(self, protocol: MoveProtocol) -> None:
        self.protocol = protocol
        self._open: list[Transfer] = []
        self.finished_moves = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def request(self, transfer: Transfer) -> None:
        self._open.append(transfer)

    def queries(self) -> set[int]:
        return {transfer.query for transfer in self._open}

    def ended(self, now_s: float) -> list[Transfer]:
        done = [t for t in self._open if t.ends_s is not None and t.ends_s <= now_s]
        self._open = [t for t in self._open if t not in done]
        self.finished_moves += len(done)
        return done

    def startable(self, running: set[int]) -> list[Transfer]:
        """Those whose destination is up and whose turn it is."""
        busy = {t.source for t in self._open if t.ends_s is not None}
        chosen: list[Transfer] = []
        for transfer in self._open:
            if transfer.ends_s is not None or transfer.destination not in running:
                continue
            if self.protocol.pauses and transfer.source in busy:
                continue
            busy.add(transfer.source)
            chosen.append(transfer)
        return chosen
