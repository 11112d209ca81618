"""What stays of journal files that are rotated out: one line a file in `path.summary`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.coding import from_json, to_json
from spillway.journal.entries import DAMAGED, time_of
from spillway.journal.rotation import open_files
from spillway.lines import append, line_of, lines_in, whole_lines

HOUR_S = 3600

Summary = tuple["Hour", ...]  # of one file


@dataclass(frozen=True, kw_only=True, slots=True)
class Hour:
    """The decisions for one class in one hour, or those of one query."""

    hour_s: int  # its beginning
    class_name: str
    query: str = ""
    first_s: float  # of its decisions; with the last one they tell one file from all others
    last_s: float
    decisions: int = 0
    offered_tuples: int = 0
    admitted_tuples: int = 0
    shed_tuples: int = 0
    completed_tuples: int = 0
    delay_s: float | None = None  # mean over the periods, weighted by what completed
    max_delay_s: float | None = None


def read_hours(path: Path) -> list[Hour]:
    """Everything that was ever journalled at `path`, rotated out or not, by hour."""
    with open_files(path) as files:
        kept = [summary_of(lines_in(file)) for _, file in files]
    gone = list(_summaries(path))
    every = [*gone, *(summary for summary in kept if summary not in gone)]  # a kill leaves both
    return list(_merged(hour for summary in every for hour in summary))


def retire(path: Path, file: Path) -> None:
    """Removes a file of the journal at `path`, summarised first.

    A kill in between leaves both; the next time the summary is already there.
    """
    summary = summary_of(whole_lines(file))
    if summary and summary not in _summaries(path):
        line = line_of({"hours": [to_json(Hour, hour) for hour in summary]})
        try:
            append(summary_path(path), line)
        except OSError:
            file.unlink()  # makes room on a full disk
            append(summary_path(path), line)
    file.unlink(missing_ok=True)


def summary_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.summary")


def summary_of(lines: Iterable[bytes]) -> Summary:
    """By hour, class and query."""
    return _merged(_decisions(lines))


def _decisions(lines: Iterable[bytes]) -> Iterator[Hour]:
    for line in lines:
        with suppress(*DAMAGED):  # a damaged line says nothing
            value = json.loads(line)
            if "event" not in value:
                yield _hour(value)


def _hour(value: Mapping[str, Any]) -> Hour:
    measured, time_s = value["measurement"], time_of(value)
    hour = Hour(
        hour_s=int(time_s // HOUR_S * HOUR_S),
        class_name=measured["class_name"],
        query=measured.get("query", ""),
        first_s=time_s,
        last_s=time_s,
        decisions=1,
        offered_tuples=measured["offered_tuples"],
        admitted_tuples=measured["admitted_tuples"],
        shed_tuples=measured["shed_tuples"],
        completed_tuples=measured["completed_tuples"],
        delay_s=measured["delay_s"],
        max_delay_s=measured["delay_s"],
    )
    return from_json(Hour, to_json(Hour, hour))  # of these types, or damaged


def _merged(hours: Iterable[Hour]) -> Summary:
    """One for each hour, class and query, ascending."""
    found: dict[tuple[int, str, str], Hour] = {}
    for hour in hours:
        key = (hour.hour_s, hour.class_name, hour.query)
        found[key] = _sum(found[key], hour) if key in found else hour
    return tuple(found[key] for key in sorted(found))


def _sum(one: Hour, other: Hour) -> Hour:
    delays = [(h.delay_s, h.completed_tuples) for h in (one, other) if h.delay_s is not None]
    completed = sum(weight for _, weight in delays)
    longest = [h.max_delay_s for h in (one, other) if h.max_delay_s is not None]
    return Hour(
        hour_s=one.hour_s,
        class_name=one.class_name,
        query=one.query,
        first_s=min(one.first_s, other.first_s),
        last_s=max(one.last_s, other.last_s),
        decisions=one.decisions + other.decisions,
        offered_tuples=one.offered_tuples + other.offered_tuples,
        admitted_tuples=one.admitted_tuples + other.admitted_tuples,
        shed_tuples=one.shed_tuples + other.shed_tuples,
        completed_tuples=one.completed_tuples + other.completed_tuples,
        delay_s=sum(d * n for d, n in delays) / completed if completed else None,
        max_delay_s=max(longest, default=None),
    )


def _summaries(path: Path) -> Iterator[Summary]:
    if summary_path(path).exists():
        for line in whole_lines(summary_path(path)):
            with suppress(*DAMAGED):  # a damaged line says nothing
                yield tuple(from_json(Hour, hour) for hour in json.loads(line)["hours"])
