"""`spillway adopt`: a job's checkpoint, from Spark's own Kafka source to the gate and back."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from spillway.cli.screen import console, print_json
from spillway.errors import SpillwayError
from spillway.hosts.spark.adoption import (
    KEPT,
    Found,
    as_json,
    found_in,
    give_back,
    require_returnable,
)
from spillway.storage import place_at


def adopt(
    checkpoint: Annotated[str, typer.Argument(help="checkpointLocation: a path or a URI")],
    back: Annotated[bool, typer.Option("--back", help="to Spark's own Kafka source")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="say what would happen, write nothing")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Take a checkpoint over from Spark's own Kafka source, or give it back, with its state."""
    place = place_at(checkpoint)
    found = found_in(place)
    if back:
        require_returnable(found, place)
    elif any(source.kind == "other" for source in found.sources):
        raise SpillwayError(
            f"'{checkpoint}' has a source that is neither a gate nor Spark's own Kafka source: only"
            " these two can take each other's place"
        )
    written = give_back(place) if back and not dry_run else ()
    if json:
        print_json({**as_json(found), "written": list(written)})
        return
    for line in (*_stands(checkpoint, found), *(_back(written) if back else _here(found))):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _stands(checkpoint: str, found: Found) -> Iterator[str]:
    done = "completed" if found.last.completed else "begun and not completed"
    yield f"{checkpoint}: the last batch is {found.last.batch_id}, {done}"
    for number, source in enumerate(found.sources, start=1):
        yield f"source {number}: {source}"
    if found.operators:
        parts = (f"operator {name}, {count} partitions" for name, count in found.operators.items())
        late = datetime.fromtimestamp(found.watermark_ms / 1000, UTC)
        mark = f"; watermark {late:%Y-%m-%dT%H:%M:%SZ}" if found.watermark_ms else ""
        yield f"state: {'; '.join(parts)}{mark}"


def _here(found: Found) -> Iterator[str]:
    if all(source.kind == "gate" for source in found.sources):
        yield "it is a gate's already; --back gives it to Spark's own Kafka source"
        return
    if not found.last.completed:
        yield f"batch {found.last.batch_id} will be run again first: all of it, as it was cut"
    yield (
        "a gate goes on there, with state and watermark as they are: no record twice, none left"
        " out. For that nothing has to be written, and nothing was"
    )
    yield (
        'to do: stop the job, change format("kafka") to format("spillway"), add option delay; leave'
        " checkpointLocation and everything behind load() as they are"
    )


def _back(written: tuple[int, ...]) -> Iterator[str]:
    if written:
        entries = " and ".join(map(str, written))
        yield f"written anew: {entries} of offsets; what stood there is in {KEPT}"
    else:
        yield f"would write the last two entries of offsets anew, and keep what is there in {KEPT}"
    yield (
        "Spark's own Kafka source goes on there, with state and watermark as they are: no record"
        " twice, none left out but what the gate has dropped"
    )
    yield (
        'to do: change format("spillway") to format("kafka") and leave out the options of the gate;'
        " checkpointLocation and everything behind load() stay as they are"
    )
