"""Memory of this process and of everything that it has started, by role (Linux: from /proc)."""

import os
from collections import defaultdict
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
    for pid in _family(os.getpid()):
        try:
            command = (_PROC / str(pid) / "cmdline").read_text().replace("\0", " ")
            pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has just ended
        role = next((role for part, role in _ROLES.items() if part in command), "other")
        role = "driver" if pid == os.getpid() else role
        found[role] += pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return dict(found)


def live_heap_mb(spark: Any) -> float:
    """What the JVM still holds after a full collection."""
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


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
