"""The journal on disk: JSON lines, one a decision or an event, rotated by size.

The journal never stops a query. When a line cannot be written (a full disk, a folder that has
gone) it is counted; the first line that can be written again says how many were lost.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.model import (
    Action,
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    KeepOfBacklog,
    Measurement,
    Target,
)


class FileJournal:
    """Appends to `path`; at `max_bytes` path becomes path.1, path.1 becomes path.2, and so on."""

    def __init__(self, path: Path, *, max_bytes: int = 16_000_000, keep_files: int = 4) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        self._lost_lines = 0

    @property
    def lost_lines(self) -> int:
        return self._lost_lines

    def record(self, measurement: Measurement, decision: Decision) -> None:
        self._write(
            {"measurement": asdict(measurement), "decision": _decision_to_json(decision)},
        )

    def event(self, time_s: float, kind: str, **fields: Any) -> None:
        """Something that is no decision: a start, a restart, a loop that went away."""
        self._write({"event": kind, "time_s": time_s, **fields})

    def _write(self, value: dict[str, Any]) -> None:
        lost = {"lost_lines": self._lost_lines} if self._lost_lines else {}
        line = json.dumps({**value, **lost}, separators=(",", ":")) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._rotate(len(line))
            _append_whole_line(self._path, line)
        except OSError:
            self._lost_lines += 1
        else:
            self._lost_lines = 0

    def _rotate(self, upcoming_bytes: int) -> None:
        if not self._path.exists() or self._path.stat().st_size + upcoming_bytes <= self._max_bytes:
            return
        for number in range(self._keep_files - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def _append_whole_line(path: Path, line: str) -> None:
    """Append, or leave the file as it was: a full disk must not tear a line."""
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        data = line.encode()
        if file.write(data) != len(data):
            file.truncate(before)
            raise OSError("the disk took only a part of the line")


def read_decisions(path: Path) -> Iterator[tuple[Measurement, Decision]]:
    """What was measured and decided, in order: the input for a replay of any load manager."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise SpillwayError(f"{path}:{number} is not a journal line: {error}") from error
        if "measurement" in value:
            yield _measurement(value["measurement"]), _decision(value["decision"])


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open() as file:
            yield from file
    except FileNotFoundError as error:
        raise SpillwayError(f"there is no journal at {path}") from error


def _decision_to_json(decision: Decision) -> dict[str, Any]:
    action = decision.action
    if isinstance(action, KeepFraction):
        shown: dict[str, Any] = {"keep_fraction": action.fraction}
    else:
        shown = {"keep_of_backlog": action.tuples}
    return {"action": shown, "reason": decision.reason, "headroom": decision.headroom}


def _decision(value: dict[str, Any]) -> Decision:
    shown = value["action"]
    action: Action
    if "keep_fraction" in shown:
        action = KeepFraction(fraction=shown["keep_fraction"])
    else:
        action = KeepOfBacklog(tuples=shown["keep_of_backlog"])
    return Decision(action=action, reason=value["reason"], headroom=value["headroom"])


def _measurement(value: dict[str, Any]) -> Measurement:
    nested = {
        "target": Target(**value["target"]),
        "backlog": Backlog(**value["backlog"]),
        "batches": tuple(BatchRecord(**batch) for batch in value["batches"]),
    }
    return Measurement(**{**value, **nested})
