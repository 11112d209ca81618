"""How many cores an application has, written down for gates that no driver of ours answers.

A gate in somebody else's job runs in a process below the JVM and knows nothing of executors. Both
sides know the JVM, so the file is named after its process. Planners import this module: standard
library only.
"""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spillway.private import make_private, write_private

_GENERATIONS = 3  # the JVM, or a daemon between it and the planner


def tell_cores(jvm_pid: int, cores: int) -> None:
    path = _file_of(jvm_pid)
    make_private(path.parent)
    write_private(path, str(cores))


def forget_cores(jvm_pid: int) -> None:
    _file_of(jvm_pid).unlink(missing_ok=True)


def tellers() -> tuple[Path, ...]:
    """Where it would be written down for this process: it may be one level below the JVM or two."""
    pids: list[int] = []
    pid = os.getppid()
    while pid > 1 and len(pids) < _GENERATIONS:
        pids.append(pid)
        pid = _parent_of(pid)
    return tuple(map(_file_of, pids))


def cores_told(files: Sequence[Path]) -> int | None:
    """None: nobody says."""
    for path in files:
        with suppress(OSError, ValueError):
            if path.parent.stat().st_uid == os.geteuid():
                return max(1, int(path.read_text()))
    return None


def _file_of(pid: int) -> Path:
    return Path(tempfile.gettempdir()) / f"spillway-cores-{os.geteuid()}" / str(pid)


def _parent_of(pid: int) -> int:
    """0 where the system does not say."""
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
