"""The gate's end of the channel: asks the driver for a query's turn.

A gate never waits for ever: when the driver does not answer in time, `ask` returns None and the
gate goes on alone with what it was told last, until the driver is back.
"""

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace

from spillway.clock import Clock
from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.handover import Positions
from spillway.model import Order, Report, Target

RETRY_S = 1.0  # after a connection has failed none is tried for this long,
LONGEST_RETRY_S = 8.0  # and for twice as long after each further one
ANSWER_S = 0.25  # how much longer than the asked wait an answer may take
_LONGEST_LINE_BYTES = 1 << 20
# Without tuples a gate has nothing to ask, but may have something to hear: soon, when it has come
# to where it was told not to go beyond.
_LISTENS_S, _LISTENS_AT_BOUND_S = 0.5, 0.05

Ask = Callable[[Report], Order | None]


class Leased:
    """Of a node whose queries others may take over: what the driver allows ends with the node's
    lease. A driver that does not answer is then no longer a leave to go on alone.

    The lease is of the host's monotonic clock, which stands for every process on it.
    """

    def __init__(self, ask: Ask, target: Target, elapsed: Callable[[], float]) -> None:
        self._ask, self._elapsed = ask, elapsed
        self.order = Order(target=target, plan_until_s=-1.0)  # the last one; not yet any
        self._heard_s = float("-inf")

    def ask(self, report: Report) -> Order | None:
        order, self._heard_s = self._ask(replace(report, held=self.order.held)), self._elapsed()
        if order is not None and order.plan_until_s is not None:
            self.order = order
        goes_on = self.holds and not (order is None and self.order.held)
        return order if goes_on else replace(self.order, may_start=False)

    def owned(self, planned: Offset) -> Offset:
        """With the windows that are its own from this batch on, as the driver said last."""
        return replace(planned, owned=self.order.owned or planned.owned)

    def led(self, order: Order | None) -> None:
        """Another gate of the query asks for all of them."""
        self.order = order or self.order

    def bound(self, stream: str) -> Mapping[int, int] | None:
        """How far batches may go."""
        until: Positions | None = self.order.until
        return None if until is None else until.get(stream, {})

    @property
    def listens(self) -> bool:
        after_s = _LISTENS_S if self.order.until is None else _LISTENS_AT_BOUND_S
        return self._elapsed() - self._heard_s > after_s

    @property
    def holds(self) -> bool:
        assert self.order.plan_until_s is not None
        return self._elapsed() <= self.order.plan_until_s


def lease_of(gate: GateOptions, ask: Ask | None, elapsed: Callable[[], float]) -> Leased | None:
    """None where the query is nobody else's to take over."""
    return Leased(ask, gate.target, elapsed) if gate.leased and ask is not None else None


class Driver:
    """Never raises and never waits longer than the report's `wait_s` and a little.

    A loop that froze still owes an answer. Until that comes nobody waits for it and nothing is
    asked; when it has come the loop is back, and the next question is one as before.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._socket: socket.socket | None = None
        self._heard = bytearray()
        self._is_owed = False
        self._failed_s = float("-inf")
        self._pause_s = 0.0  # 0 while the channel is whole

    def ask(self, report: Report) -> Order | None:
        """What the driver says, or None when it does not answer."""
        now_s = self._clock.now_s()
        if self._socket is None and abs(now_s - self._failed_s) < self._pause_s:
            return None
        try:
            if self._is_owed and self._line(within_s=0.0) is None:
                return None
            self._is_owed = False
            self._say(report)
            line = self._line(within_s=report.wait_s + ANSWER_S)
            if line is None:
                self._is_owed = True
                return None
            order = from_json(Order, json.loads(line))
            self._pause_s = 0.0
            return order
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SpillwayError):
            self.close()
            self._failed_s = now_s
            self._pause_s = min(LONGEST_RETRY_S, max(RETRY_S, 2.0 * self._pause_s))
            return None

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket, self._is_owed = None, False
        self._heard.clear()

    def _say(self, report: Report) -> None:
        if self._socket is None:
            if os.stat(os.path.dirname(self._path)).st_mode & 0o077:
                raise PermissionError(f"{self._path} is open to other users")
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(ANSWER_S)
            self._socket.connect(self._path)
        self._socket.settimeout(ANSWER_S)
        self._socket.sendall(json.dumps(to_json(Report, report)).encode() + b"\n")

    def _line(self, within_s: float) -> bytes | None:
        """None: it is not whole yet."""
        assert self._socket is not None
        self._socket.settimeout(within_s)
        while (end := self._heard.find(b"\n")) < 0:
            if len(self._heard) > _LONGEST_LINE_BYTES:
                raise ValueError("the answer has no end")
            try:
                part = self._socket.recv(1 << 16)
            except (TimeoutError, BlockingIOError):
                return None
            if not part:
                raise ConnectionError("the control loop closed the channel")
            self._heard += part
        line = bytes(self._heard[:end])
        del self._heard[: end + 1]
        return line
