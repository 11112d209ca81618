"""The gates of one query decide together.

Spark asks the sources of a query one after the other, each in a process of its own. Gates that
share option `joint` tell each other, in small files of one private folder, where they stand: no
gate waits while another has tuples, the first one with tuples decides one share for all of them,
and a batch's time is laid to the tuples of all.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spillway.gate.offsets import Offset
from spillway.logs import catalog
from spillway.ports import ArrivalCurve, Log, Span

_SAME_TRIGGER_S = 0.05  # between two gates of one trigger; two triggers are a batch apart
_PARTITIONS_APART = 1_000_000  # keeps the partitions of different gates apart in one backlog
_KEPT_PLANS = 4

Pending = list[tuple[Span, ArrivalCurve]]


class Joint:
    """One gate's view of the others. All times are of the host's monotonic clock."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        open_log: Callable[[Mapping[str, str]], Log] = catalog.open_log,
        folder: Path | None = None,
        member: str | None = None,
    ) -> None:
        self._folder = folder or _private_folder(name)
        self._path = self._folder / f"{member or os.getpid()}.json"
        self._open_log = open_log
        self._logs: dict[str, Log] = {}
        self._state: dict[str, Any] = {"options": dict(options), "plans": []}

    def enter(self, previous: Offset) -> None:
        """This gate is asked: show where it stands."""
        self._state["options"] |= previous.pinned
        self._state["stops"] = {str(s.partition): s.stop for s in previous.stretches}
        self._publish()

    def planned(self, at_s: float, offset: Offset, share: float | None) -> None:
        """This gate has planned a batch; `share` is what it decided for all gates, if it did."""
        plan = {
            "at_s": at_s,
            "kept": offset.kept_tuples(),
            "scanned": offset.scanned_tuples,
            "share": share,
        }
        self._state["plans"] = [*self._state["plans"][1 - _KEPT_PLANS :], plan]
        self._state["stops"] = {str(s.partition): s.stop for s in offset.stretches}
        self._publish()

    def share(self, now_s: float) -> float | None:
        """The share that another gate has decided for this trigger."""
        for _, state in self._others():
            for plan in state["plans"]:
                if plan["share"] is not None and abs(now_s - plan["at_s"]) < _SAME_TRIGGER_S:
                    return float(plan["share"])
        return None

    def beside(self, planned_s: float) -> tuple[int, int]:
        """(kept, scanned) tuples of the other gates in the batch that was planned at that time."""
        kept = scanned = 0
        for _, state in self._others():
            for plan in state["plans"]:
                if abs(plan["at_s"] - planned_s) < _SAME_TRIGGER_S:
                    kept, scanned = kept + plan["kept"], scanned + plan["scanned"]
        return kept, scanned

    def pending(self, now_s: float) -> Pending:
        """What waits at the other gates (`now_s` is wall time)."""
        found: Pending = []
        for number, (name, state) in enumerate(self._others(), start=1):
            if "stops" not in state:
                continue
            log = self._logs.setdefault(name, self._open_log(state["options"]))
            for span in log.extent(now_s):
                start = max(span.start, state["stops"].get(str(span.partition), span.start))
                if span.stop > start:
                    waiting = Span(partition=span.partition, start=start, stop=span.stop)
                    apart = Span(
                        partition=number * _PARTITIONS_APART + span.partition,
                        start=start,
                        stop=span.stop,
                    )
                    found.append((apart, log.arrivals(waiting)))
        return found

    def _others(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in sorted(self._folder.glob("*.json")):
            if path == self._path:
                continue
            if path.stem.isdigit() and not _alive(int(path.stem)):
                path.unlink(missing_ok=True)
                continue
            with suppress(OSError, ValueError):
                yield path.stem, json.loads(path.read_text())

    def _publish(self) -> None:
        """In one step, so that nobody reads half a file; a full disk only makes gates lonely."""
        with suppress(OSError):
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps(self._state))
            draft.replace(self._path)


def _private_folder(name: str) -> Path:
    """Of this user, this Spark driver and this query."""
    root = Path(tempfile.gettempdir()) / f"spillway-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.stat().st_uid != os.getuid() or root.stat().st_mode & 0o077:
        raise PermissionError(f"{root} is open to other users: remove it")
    folder = root / f"joint-{os.getppid()}-{name.replace('/', '_')}"
    folder.mkdir(exist_ok=True)
    return folder


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
