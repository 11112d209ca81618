"""Results as lines of JSON, with the time at which they came: a function for sink `python`.

Each process writes a file of its own into the folder that SPILLWAY_RESULTS names; a batch that was
run again is read once.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = "SPILLWAY_RESULTS"
KEEP = "spillway_lab.benchmarks.kept_results:keep"


def keep(rows: pa.Table, batch_id: int, generation: int = 1) -> None:
    said = {"at_s": time.time(), "generation": generation, "batch": batch_id}
    line = json.dumps({**said, "rows": rows.to_pylist()}) + "\n"
    with (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(line)


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row, and when it came first."""

    at_s: float
    generation: int
    row: dict[str, Any]


def kept(folder: Path) -> Iterator[Result]:
    """In the order in which they came, each batch of each generation once."""
    seen = set()
    for line in sorted(_lines(folder.glob("*.jsonl")), key=lambda line: float(line["at_s"])):
        batch = line["generation"], line["batch"]
        if batch not in seen:
            seen.add(batch)
            for row in line["rows"]:
                yield Result(at_s=line["at_s"], generation=line["generation"], row=row)


def _lines(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for line in file.read_text().splitlines():
            yield json.loads(line)
