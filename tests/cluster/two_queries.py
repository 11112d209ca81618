"""Two queries whose every result is known beforehand: rows of a stream without state, and counts of
windows. What came out of them is compared to the tuple."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = "SPILLWAY_TWO_QUERIES"
RATE, WINDOW_US = 100, 1_000_000
BY_WINDOW = "FROM readings GROUP BY window(event_time, '1 second')"
COUNTS = f"SELECT unix_micros(window.start) AS start_us, count(*) AS n {BY_WINDOW}"
OTHER_COUNTS = COUNTS.replace("AS n ", "AS n, max(id) AS m ")
ROWS = "SELECT id FROM readings WHERE id % 2 = 0"
OTHER_ROWS = "SELECT id, -id AS other FROM readings WHERE id % 2 = 0"
KEEP_ROWS = "{{type: python, call: 'two_queries:keep_rows', generations: true}}"
QUERIES = f"""\
streams:
  readings:
    source: synthetic
    options: {{{{rate: {RATE}, columns: "id position, event_time time"}}}}
    event_time: event_time
    watermark: 1s
classes:
  default: {{{{delay: 4s, manager: none}}}}
queries:
  counts:
    sink: {{{{type: python, call: 'two_queries:keep_counts', generations: true}}}}
    sql: {COUNTS}
  rows:
    sink: {KEEP_ROWS}
    sql: {ROWS}
"""


def keep_counts(results: pa.Table, batch_id: int, generation: int) -> None:
    _keep("counts", results, batch_id, generation)


def keep_rows(results: pa.Table, batch_id: int, generation: int) -> None:
    _keep("rows", results, batch_id, generation)


def _keep(query: str, results: pa.Table, batch_id: int, generation: int) -> None:
    line = {"generation": generation, "batch": batch_id, "rows": results.to_pylist()}
    with (Path(os.environ[FOLDER]) / f"{query}.{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def environment(folder: Path) -> dict[str, str]:
    """For processes whose sinks keep their results there."""
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, FOLDER: str(folder), "PYTHONPATH": path}


def kept(folder: Path, query: str) -> list[tuple[int, dict[str, Any]]]:
    """Generation and row: every batch of every generation once, however often it was written."""
    batches = {
        (line["generation"], line["batch"]): line["rows"]
        for file in folder.glob(f"{query}.*.jsonl")
        for line in _whole_lines(file)
    }
    return [(generation, row) for (generation, _), rows in sorted(batches.items()) for row in rows]


def _whole_lines(file: Path) -> Iterator[dict[str, Any]]:
    """A kill tears the last one; its batch is written again."""
    for line in file.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def differences(folder: Path, rows: Iterable[int] | None = None) -> tuple[int, list[str]]:
    """How many tuples stand behind what was compared, and what is wrong with it: every row of the
    stream from the first that came to the last, and every whole window between, once. `rows`:
    where they went elsewhere."""
    found = Counter(rows or (row["id"] for _, row in kept(folder, "rows")))
    wrong = [
        f"row {each}: {found[each]} times"
        for each in range(min(found), max(found) + 2, 2)
        if found[each] != 1
    ]
    counts: dict[int, list[int]] = {}
    for _, row in kept(folder, "counts"):
        counts.setdefault(row["start_us"], []).append(row["n"])
    due = range(min(counts) + WINDOW_US, max(counts) + 1, WINDOW_US)
    wrong += [f"window {at}: {counts.get(at, [])}" for at in due if counts.get(at) != [RATE]]
    return len(found) + RATE * len(due), wrong
