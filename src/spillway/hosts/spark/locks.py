"""One driver at a time writes to a flow's folder and to a ledger.

A lock is held by an open descriptor, so the death of its process releases it. Who has it is written
in the lock's file. Planners of one driver share the lock of a ledger: those of a query's gates, and
that of a restarted query while the planner before it still lives.
"""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.private import make_private, open_private

_LOOK_S = 0.05


@dataclass(kw_only=True)
class Lock:
    path: Path
    what: str
    fix: str
    owner: str  # those of one owner share it, where it is shared at all
    shared: bool = False
    _descriptor: int | None = field(default=None, init=False)

    def take(self, wait_s: float = 0.0) -> None:
        """Raises where somebody else keeps it for longer.

        Where the disk refuses the file or cannot lock it, nothing is held: that must not end a
        query, and the next call tries again.
        """
        deadline_s = time.monotonic() + wait_s
        while self._descriptor is None:
            try:
                make_private(self.path.parent)
                self._descriptor = self._held()
            except OSError:
                return
            if self._descriptor is None and time.monotonic() >= deadline_s:
                raise SpillwayError(f"{self.what} is in use by {self._written()}: {self.fix}")
            if self._descriptor is None:
                time.sleep(_LOOK_S)

    @contextmanager
    def while_held(self) -> Iterator[None]:
        self.take()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _held(self) -> int | None:
        """None: somebody else has it."""
        descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT)
        try:
            if self._is_ours(descriptor):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def _is_ours(self, descriptor: int) -> bool:
        """The first one writes the owner while it is alone, others share where it is theirs.

        Between the two locks somebody else may come in: so what is written is looked at again.
        """
        alone = _locked(descriptor, fcntl.LOCK_EX)
        if alone:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self.owner.encode(), 0)
        if not self.shared:
            return alone
        return _locked(descriptor, fcntl.LOCK_SH) and self._written() == self.owner

    def _written(self) -> str:
        with suppress(OSError):
            return self.path.read_text(errors="replace")[:200] or "another driver"
        return "another driver"


def this_process() -> str:
    return _named(os.getpid())


def driver_of_planner() -> str:
    """Spark's Java process starts the planners of all its queries itself."""
    return _named(os.getppid())


def _named(pid: int) -> str:
    """The number of a process comes again after a while, but not with the same start."""
    began = ""
    with suppress(OSError, IndexError):
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        began = f", started at tick {ticks}"
    return f"process {pid} on {socket.gethostname()}{began}"


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
