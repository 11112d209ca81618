"""The gates of one query decide as one.

Spark asks the sources of a query one after the other, always in the same order, each in a process
of its own. The gate that is asked first leads: it looks at what waits at all of them, asks the
driver for the query's turn and decides one share. What it planned holds for the others until it is
asked again, however long they take. Time, fixed price and counts of a batch are its to account.

Gates that share option `joint` tell each other where they stand in small files of one private
folder; how a log is opened they ask each other (`sharing.py`). All times in the files are of the
host's monotonic clock.
"""

import atexit
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spillway.coding import from_json, to_json
from spillway.gate.company import Company, Led, Part
from spillway.gate.gate import Gate
from spillway.gate.offsets import Arrived, Offset
from spillway.hosts.spark.planner.asking import Leased
from spillway.hosts.spark.planner.sharing import Sharing, told_at
from spillway.logs import catalog
from spillway.logs.dead_letters import private_folder_of_user
from spillway.model import Order, Prices
from spillway.ports import ArrivalCurve, Log, Span
from spillway.private import make_private, open_private

_PARTITIONS_APART = 1 << 40  # keeps the partitions of different gates apart in one backlog
_OF_ROWS = ("decode", "dead_letter", "mode", "schema")  # options of a log that concern its rows
_ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_BORN_S = time.monotonic()  # this process: what was asked before is of an earlier run

Pending = list[tuple[Span, ArrivalCurve]]


@dataclass(frozen=True, kw_only=True)
class Lead:
    """What the leading gate planned in this trigger."""

    starts: bool  # whether the query runs a batch
    led: Led
    prices: Prices | None = None
    parallelism: int | None = None  # tasks of a batch
    order: Order | None = None  # the driver's last, where the query runs by a lease

    @classmethod
    def of(cls, gate: Gate, starts: bool, parallelism: int, lease: Leased | None) -> "Lead":
        return cls(
            starts=starts,
            led=gate.led,
            prices=gate.prices,
            parallelism=parallelism,
            order=None if lease is None else lease.order,
        )


class Joint:
    """One gate's view of the others."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        open_log: Callable[[Mapping[str, str]], Log] = catalog.open_log,
        folder: Path | None = None,
        member: str | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder or _private_folder(name)
        self._name = member or str(os.getpid())
        self._open_log, self._elapsed = open_log, elapsed
        self._logs: dict[str, Log] = {}
        self._zeros: dict[str, tuple[int, int]] = {}  # admitted and shed, when first seen
        self._asks = 0
        self._before_s = _BORN_S if folder is None else float("-inf")  # asked before
        self._followed: tuple[str, int] | None = None  # whose plan, and of which question
        self._options = dict(options)
        self._sharing = Sharing(lambda: self._options)
        self._state: dict[str, Any] = {"at": self._sharing.path, "first_s": elapsed()}
        atexit.register(self._file(self._name).unlink, missing_ok=True)

    def enter(self, previous: Offset) -> None:
        """This gate is asked: show where it stands."""
        self._before_s = self._state.get("asked_s", self._before_s)
        self._asks += 1
        self._options |= previous.pinned
        self._state |= {"asks": self._asks, "asked_s": self._elapsed(), "lead": None}
        self._stand(previous)
        self._publish()

    def lead(self) -> Lead | None:
        """What the leading gate planned in this trigger; None: this one leads.

        So it does, too, where the leader's word is missing: a full disk only makes gates lonely.
        """
        members = {name: state for name, state in self._others() if self._is_asked(state)}
        first = min(members, key=lambda name: float(members[name]["first_s"]), default=None)
        if first is None or members[first]["first_s"] >= self._state["first_s"]:
            return None
        said, question = members[first].get("lead"), (first, members[first]["asks"])
        if said is None or question == self._followed:
            return None
        self._followed = question
        return from_json(Lead, said)

    def leads(self, lead: Lead) -> None:
        """This gate's word for the others, in this trigger."""
        self._state["lead"] = to_json(Lead, lead)
        self._publish()

    def planned(self, batch: Offset, part: Part) -> None:
        """This gate's part of the batch that is planned in this trigger."""
        self._state["part"] = {"of": self._followed, **asdict(part)}
        self._stand(batch)
        self._publish()

    def parts(self) -> list[Part]:
        """What the others had in the batch that this gate led last."""
        found, mine = [], [self._name, self._asks - 1]  # it has been asked again since
        for _, state in self._others():
            part = dict(state.get("part") or {"of": None})
            if part.pop("of") == mine:
                arrived = part.pop("arrived")
                found.append(Part(**part, arrived=None if arrived is None else Arrived(**arrived)))
        return found

    def company(self, now_s: float) -> Company:
        """What waits at the other gates, and what they did so far (`now_s` is wall time)."""
        pending: Pending = []
        admitted = shed = 0
        for number, (name, state) in enumerate(self._others(), start=1):
            if "stops" in state and self._is_asked(state):
                # A gate's life before this run is nobody's arrival now.
                zero = self._zeros.setdefault(name, (state["admitted"], state["shed"]))
                admitted += state["admitted"] - zero[0]
                shed += state["shed"] - zero[1]
                pending += self._pending(number, name, state, now_s)
        return Company(pending=pending, admitted_tuples=admitted, shed_tuples=shed)

    def _pending(self, number: int, name: str, state: dict[str, Any], now_s: float) -> Pending:
        if name not in self._logs:
            # Only its positions and arrivals are looked at: no schema, nothing to be decoded.
            try:
                told = told_at(state["at"])
            except (OSError, ValueError):  # it has just ended: the next trigger sees
                return []
            options = {k: v for k, v in told.items() if k not in _OF_ROWS}
            self._logs[name] = self._open_log(options)
        log, found = self._logs[name], []
        for span in log.extent(now_s):
            start = max(span.start, state["stops"].get(str(span.partition), span.start))
            if span.stop > start:
                waiting = Span(partition=span.partition, start=start, stop=span.stop)
                apart = number * _PARTITIONS_APART + span.partition
                found.append(
                    (Span(partition=apart, start=start, stop=span.stop), log.arrivals(waiting))
                )
        return found

    def _is_asked(self, state: Mapping[str, Any]) -> bool:
        """Whether a gate is asked as often as this one; if not, it is of a run that has ended."""
        return float(state.get("asked_s", float("-inf"))) >= self._before_s

    def _stand(self, at: Offset) -> None:
        self._state["stops"] = {str(s.partition): s.stop for s in at.stretches}
        self._state |= {"admitted": at.totals.admitted, "shed": at.totals.shed}

    def _others(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in sorted(self._folder.glob("*.json")):
            if path.stem == self._name:
                continue
            if path.stem.isdigit() and not _alive(int(path.stem)):
                path.unlink(missing_ok=True)
                continue
            with suppress(OSError, ValueError):
                yield path.stem, json.loads(path.read_text())

    def _publish(self) -> None:
        """In one step, so that nobody reads half a file."""
        with suppress(OSError):
            draft = self._folder / f"{self._name}.draft"
            with os.fdopen(open_private(draft, _ANEW), "w") as file:
                file.write(json.dumps(self._state))
            draft.replace(self._file(self._name))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _private_folder(name: str) -> Path:
    """Of this user, this Spark driver and this query."""
    root = make_private(private_folder_of_user())
    if root.lstat().st_mode & 0o077:
        raise PermissionError(f"{root} is open to other users: remove it")
    digest = hashlib.blake2b(name.encode(), digest_size=12).hexdigest()  # a name makes no path
    return make_private(root / f"joint-{os.getppid()}-{digest}")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
