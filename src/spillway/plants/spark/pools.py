"""Spark's FAIR pools, one per class: who gets the next free core inside the machine.

The gates decide which batches run; the pools decide whose tasks go first while several run. A
pool's weight cannot change while Spark runs, so shifting capacity stays the gates' work.
"""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

_POOL = (
    '<pool name="{name}"><schedulingMode>FAIR</schedulingMode>'
    "<weight>{weight}</weight><minShare>{share}</minShare></pool>"
)


def pool_settings(priorities: Mapping[str, int], folder: Path) -> dict[str, str]:
    """Write the allocation file and give the settings that a session needs to obey it.

    The highest class is given one core before anybody else: its tasks wait for no more than the
    one task that holds it.
    """
    highest = max(priorities.values())
    pools = "".join(
        _POOL.format(name=escape(name), weight=priority, share=int(priority == highest))
        for name, priority in priorities.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pools.xml"
    path.write_text(f"<allocations>{pools}</allocations>\n")
    return {
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": str(path.absolute()),
    }
