"""`spillway offsets`: where Spark's own Kafka source would go on, for leaving the gate."""

import json
import sys
from typing import Annotated

import typer

from spillway.cli.screen import errors
from spillway.errors import SpillwayError
from spillway.hosts.spark.files import logged_batches
from spillway.hosts.spark.planner.starts import starting_offsets
from spillway.storage import place_at


def offsets(
    checkpoint: Annotated[str, typer.Argument(help="checkpointLocation of the query")],
    topic: Annotated[str, typer.Option(help="topic to name in the JSON")] = "",
) -> None:
    """Print the `startingOffsets` after the last completed batch, as JSON for Spark's source.

    A checkpoint of Spark's own Kafka source gives the JSON with which a gate takes over.
    """
    logged = logged_batches(place_at(checkpoint))
    done = [batch for batch in logged if batch.completed]
    if not done:
        raise SpillwayError(f"'{checkpoint}' has no completed batch: nothing has been read yet")
    found = [starting_offsets(source, topic) for source in done[-1].sources if source is not None]
    if not logged[-1].completed:
        errors.print(
            f"spillway: batch {logged[-1].batch_id} was begun but not completed: its tuples will be"
            " read again; start the query once more and stop it while it waits to avoid that",
            highlight=False,
        )
    for value in found:
        sys.stdout.write(json.dumps(value) + "\n")
