"""Control logs that the suite runs over, and a process that hammers one (see its `main`)."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spillway.hosts.cluster.control_log import AwayError, ControlLog, Latest, OvertakenError
from spillway.hosts.cluster.folder import FolderLog
from spillway.hosts.cluster.kafka import KafkaLog
from spillway.hosts.cluster.records import Record

Place = dict[str, str]  # says where a log is, also to another process


def opened(place: Place, cluster: str = "tests") -> ControlLog:
    if place["kind"] == "folder":
        return FolderLog(Path(place["at"]), cluster)
    return KafkaLog({"bootstrap.servers": place["at"]}, place["topic"], cluster)


def record(key: str, epoch: int = 1, writer: str = "w", **body: Any) -> Record:
    return Record(cluster="tests", key=key, epoch=epoch, writer=writer, body=body)


def chain_on(log: ControlLog, name: str, say: Callable[[str], None], until: Path) -> None:
    """Appends records that each name the one before, as their writer has read it."""
    known, number = Latest(log), 0
    saw = ""
    while not until.exists():
        try:
            for placed in known.read_on().placed:
                assert placed.record.body is not None
                saw = placed.record.body["id"]
            number += 1
            mine = f"{name}-{number}"
            known.append(record(f"k{number % 7}", number, name, id=mine, saw=saw))
            saw = mine
            say(mine)
        except OvertakenError:
            continue
        except AwayError:
            time.sleep(0.05)


def main(arguments: list[str]) -> None:
    place, name, until = json.loads(arguments[0]), arguments[1], Path(arguments[2])
    chain_on(opened(place), name, lambda text: print(text, flush=True), until)


if __name__ == "__main__":
    main(sys.argv[1:])
