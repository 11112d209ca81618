"""Where the gates of an application find whoever has attached to it.

A planner is started by Spark's Java process, which the program that attaches drives: its number
names a file, in a folder that only its user can enter, with the path of the control channel.
"""

from contextlib import suppress
from pathlib import Path

from spillway.logs.dead_letters import private_folder_of_user
from spillway.private import make_private, require_ours, write_private


def announce(java_pid: int, channel: Path) -> Path:
    """The file that says it."""
    place = _place(java_pid)
    make_private(place.parent)
    write_private(place, str(channel))
    return place


def announced(java_pid: int) -> str | None:
    place = _place(java_pid)
    with suppress(OSError):
        require_ours(place)
        return place.read_text()
    return None


def _place(java_pid: int) -> Path:
    return private_folder_of_user() / f"attached-{java_pid}"
