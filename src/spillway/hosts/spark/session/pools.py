"""How the tasks of several classes share one machine inside Spark.

The gates decide which batches run. Spark cannot interrupt a task, so a batch of a high class would
wait for the tasks of a low one, once per stage. On one machine every batch in flight therefore gets
task slots of its own, and the operating system, which can interrupt, shares the cores among them.
FAIR pools decide whose tasks go first where slots are short (on a cluster).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from spillway.classes.turns import batches_in_flight
from spillway.private import make_private, write_private

_POOL = (
    '<pool name="{name}"><schedulingMode>FAIR</schedulingMode>'
    "<weight>{weight}</weight><minShare>{share}</minShare></pool>"
)
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*(\d+))?\])?")


def task_slots(master: str) -> int | None:
    """How many tasks a local master runs at once; None for a cluster."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    return cores_here() if match[1] == "*" else int(match[1] or 1)


def cores_here() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def session_for(
    master: str, priorities: Mapping[str, int], folder: Path, queries: int = 1
) -> tuple[str, dict[str, str]]:
    """The master and the settings of a session that runs so many queries in these classes.

    Queries of one class need slots of their own as well: where they wait for each other's tasks,
    the one with the larger batches makes the other's look dear, and takes ever more.
    """
    settings = _pool_settings(priorities, folder)
    cores, match = task_slots(master), _LOCAL.fullmatch(master)
    if cores is None or match is None or max(queries, len(priorities)) < 2:
        return master, settings
    slots = cores * batches_in_flight(cores, priorities.values())
    settings["spark.default.parallelism"] = str(cores)
    return f"local[{slots},{match[2] or 1}]", settings


def settings_to_scale(least: int, most: int) -> dict[str, str]:
    """Of a session whose executors come and go.

    State pins its tasks to where it was: without a wait for that place it spreads to executors
    that come. How many parts it has is fixed in the checkpoint: two for each executor at most.
    Only where it is switched on do executors end when their tasks have.
    """
    return {
        "spark.executor.instances": str(least),
        "spark.decommission.enabled": "true",
        "spark.locality.wait": "0s",
        "spark.sql.shuffle.partitions": str(2 * most),
    }


def _pool_settings(priorities: Mapping[str, int], folder: Path) -> dict[str, str]:
    """Write the allocation file and give the settings that a session needs to obey it.

    The highest class is given one core before anybody else: where slots are short its tasks wait
    for no more than the one task that holds it. A pool's weight cannot change while Spark runs, so
    shifting capacity stays the gates' work.
    """
    highest = max(priorities.values())
    pools = "".join(
        _POOL.format(name=escape(name), weight=priority, share=int(priority == highest))
        for name, priority in priorities.items()
    )
    make_private(folder)
    path = folder / "pools.xml"
    write_private(path, f"<allocations>{pools}</allocations>\n")
    return {
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": str(path.absolute()),
    }
