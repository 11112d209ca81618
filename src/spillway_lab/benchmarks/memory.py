"""Memory and processor time of this process and of everything that it has started, by role
(Linux: from /proc)."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_ROLES = {  # by what stands in the command line
    "python_streaming_source_runner": "planners",
    "pyspark.daemon": "workers",
    "java": "jvm",
}


def resident_mb() -> dict[str, float]:
    """Resident memory: driver (this process), jvm, planners, workers, and the processes of each."""
    found: dict[str, float] = defaultdict(float)
    for role, folder in _processes():
        with suppress(OSError, IndexError):  # it has just ended
            pages = int((folder / "statm").read_text().split()[1])
            found[role] += pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return dict(found)


def cpu_s() -> dict[str, float]:
    """Processor time so far, with that of children that have ended."""
    found: dict[str, float] = defaultdict(float)
    for role, folder in _processes():
        with suppress(OSError, IndexError):
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:15]
            found[role] += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return dict(found)


def set_cores(cores: set[int]) -> None:
    """On which cores this process and those that it has started run, with all their threads."""
    for _, folder in _processes():
        for thread in (folder / "task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cores)


def live_heap_mb(spark: Any) -> float:
    """What the JVM still holds after a full collection."""
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def _processes() -> Iterator[tuple[str, Path]]:
    for pid in _family(os.getpid()):
        folder = _PROC / str(pid)
        with suppress(OSError):
            command = (folder / "cmdline").read_text().replace("\0", " ")
            role = next((role for part, role in _ROLES.items() if part in command), "other")
            yield "driver" if pid == os.getpid() else role, folder


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children[parent].append(int(entry.name))
    family = [root]
    for pid in family:
        family += children[pid]
    return family
