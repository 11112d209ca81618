"""The private channel between the gates' planner processes and the control loop in the driver.

One JSON line each way: a gate reports where it stands and is told what to do. The socket lives in
a folder that only its owner may enter. A gate never waits for ever: when the loop does not answer
in time, `ask` returns None and the gate decides alone; it tries again a little later.
"""

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spillway.clock import Clock
from spillway.errors import SpillwayError
from spillway.model import Action, Backlog, BatchRecord, KeepFraction, KeepOfBacklog, Target

RETRY_S = 1.0  # after a failure the gate decides alone for this long before it asks again,
LONGEST_RETRY_S = 8.0  # and twice as long after each further one
ANSWER_S = 0.25  # how much longer than the asked wait an answer may take


@dataclass(frozen=True, kw_only=True, slots=True)
class GateReport:
    """Where a gate stands when it is about to plan a batch. Counts are since its first start."""

    gate: str
    class_name: str
    time_s: float
    offered_tuples: int
    admitted_tuples: int
    shed_tuples: int
    completed_tuples: int
    delay_s: float | None  # the target's statistic over what completed since the last report
    backlog: Backlog
    batches: tuple[BatchRecord, ...]  # finished since the last report
    fixed_s: float = 0.0  # o and c as the gate has learned them; 0 while unknown
    cost_s: float = 0.0
    least_cost_s: float = 0.0  # what c is at least
    reason: str = ""  # of the decision that the gate made last
    wait_s: float = 0.0  # how long the answer may be held back until this gate may start
    joint: str | None = None  # the gates of one query have one name, one batch and one slot
    joined: bool = False  # another gate of the query has got the slot for this batch

    @property
    def slot(self) -> str:
        return self.joint or self.gate


@dataclass(frozen=True, kw_only=True, slots=True)
class Directive:
    """What the control loop tells a gate."""

    target: Target
    may_start: bool = True
    action: Action | None = None  # None: the gate's own load manager decides
    reason: str = ""


Answer = Callable[[GateReport], Directive]
Leave = Callable[[str], None]
Change = Callable[[str, str], None]  # key and value, for example ("gold.delay", "1s")


def _refuse(key: str, value: str) -> None:
    raise SpillwayError(f"{key} cannot be changed here")


class ChannelServer:
    """Listens for gates; `answer` is called in one thread per gate, `leave` when a gate is gone.

    Changes at run time come in by the same door: `change` raises SpillwayError to refuse one.
    """

    def __init__(self, answer: Answer, leave: Leave, change: Change = _refuse) -> None:
        self._answer = answer
        self._leave = leave
        self._change = change
        self._folder = Path(tempfile.mkdtemp(prefix="spillway-"))  # mode 0700
        self.path = self._folder / "control"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self._socket.listen()
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="spillway-channel", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        gate: str | None = None
        try:
            with connection, connection.makefile("rwb") as stream:
                for line in stream:
                    value = json.loads(line)
                    if "set" in value:
                        stream.write(_line(self._changed(value["set"], value["to"])))
                    else:
                        report = _report_from_json(value)
                        gate = report.gate
                        stream.write(_line(_directive_to_json(self._answer(report))))
                    stream.flush()
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not a gate, or one that went away in the middle of a line: as good as left
        finally:
            self._connections.discard(connection)
            if gate is not None:
                self._leave(gate)

    def _changed(self, key: str, to: str) -> dict[str, Any]:
        try:
            self._change(key, to)
        except SpillwayError as error:
            return {"error": str(error)}
        return {"done": True}


def request_change(path: str, key: str, to: str) -> None:
    """Ask a running flow to change a setting; raises SpillwayError when it refuses or is gone."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5.0)
            connection.connect(path)
            connection.sendall(_line({"set": key, "to": to}))
            answer = json.loads(connection.makefile("rb").readline())
    except (OSError, ValueError) as error:
        raise SpillwayError(f"the flow does not answer at {path}: is it running?") from error
    if "error" in answer:
        raise SpillwayError(answer["error"])


class ChannelClient:
    """A gate's end. Never raises and never waits longer than the report's `wait_s` and a little."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._stream: Any = None
        self._socket: socket.socket | None = None
        self._failed_s = float("-inf")
        self._pause_s = 0.0  # 0 while the loop answers

    def ask(self, report: GateReport) -> Directive | None:
        """The loop's directive, or None when the loop does not answer.

        A loop that hangs still takes reports. So the first question after a failure is one that
        must be answered at once: a query must not stand still for a loop that may have gone.
        """
        now_s = self._clock.now_s()
        if abs(now_s - self._failed_s) < self._pause_s:
            return None
        if self._pause_s > 0.0:
            report = replace(report, wait_s=0.0)
        try:
            stream = self._connect()
            assert self._socket is not None
            self._socket.settimeout(report.wait_s + ANSWER_S)
            stream.write(_line(asdict(report)))
            stream.flush()
            line = stream.readline()
            if not line:
                raise ConnectionError("the control loop closed the channel")
            directive = _directive_from_json(json.loads(line))
            self._pause_s = 0.0
            return directive
        except (OSError, ValueError, KeyError, TypeError):
            self.close()
            self._failed_s = now_s
            self._pause_s = min(LONGEST_RETRY_S, max(RETRY_S, 2.0 * self._pause_s))
            return None

    def close(self) -> None:
        for part in (self._stream, self._socket):
            if part is not None:
                with contextlib.suppress(OSError):
                    part.close()
        self._stream = self._socket = None

    def _connect(self) -> Any:
        if self._socket is None:
            if os.stat(os.path.dirname(self._path)).st_mode & 0o077:
                raise PermissionError(f"{self._path} is open to other users")
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(ANSWER_S)
            self._socket.connect(self._path)
            self._stream = self._socket.makefile("rwb")
        return self._stream


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _report_from_json(value: dict[str, Any]) -> GateReport:
    nested = {
        "backlog": Backlog(**value["backlog"]),
        "batches": tuple(BatchRecord(**batch) for batch in value["batches"]),
    }
    return GateReport(**{**value, **nested})


def _directive_to_json(directive: Directive) -> dict[str, Any]:
    action = directive.action
    shown: dict[str, float] | None = None
    if isinstance(action, KeepFraction):
        shown = {"fraction": action.fraction}
    elif isinstance(action, KeepOfBacklog):
        shown = {"tuples": action.tuples}
    return {**asdict(directive), "action": shown}


def _directive_from_json(value: dict[str, Any]) -> Directive:
    action: Action | None = None
    if value["action"] is not None:
        shown = value["action"]
        action = KeepFraction(**shown) if "fraction" in shown else KeepOfBacklog(**shown)
    return Directive(**{**value, "action": action, "target": Target(**value["target"])})
