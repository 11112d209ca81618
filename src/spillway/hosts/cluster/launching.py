"""How a node is started: a line that is run, whoever made it.

A node outlives the coordinator that asked for it, and ends by itself when it is told so through the
control log: so there is nothing to hold on to here.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.flow.cluster import Cluster

Launch = Callable[[str], None]  # of a node, by its name
PLACEHOLDERS = ("node", "file")


def launcher_of(cluster: Cluster, file: Path, logs: Path) -> Launch:
    """What starts the nodes of this cluster; what they print goes to a file each under `logs`."""

    def launch(node: str) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        command = command_of(cluster, file, node)
        with (logs / f"{node}.log").open("ab") as log:
            try:
                nothing = subprocess.DEVNULL
                subprocess.Popen(
                    command, stdin=nothing, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                raise SpillwayError(
                    f"node '{node}' cannot be started: {command[0]}: {error.strerror}"
                ) from error

    return launch


def command_of(cluster: Cluster, file: Path, node: str) -> Sequence[str]:
    """process and standalone run `spillway node` here, with a master of their own or with that of
    the flow; command is the user's."""
    if cluster.launcher != "command":
        return [sys.executable, "-m", "spillway.cli.app", "node", str(file), "--name", node]
    assert cluster.command is not None
    try:
        words = shlex.split(cluster.command)
        if not words:
            raise ValueError("it names no program")
        return [word.format(node=node, file=file) for word in words]
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise SpillwayError(
            f"cluster.command is '{cluster.command}': {error}; it may have {{node}} and {{file}} in"
            " it, and no other braces"
        ) from error
