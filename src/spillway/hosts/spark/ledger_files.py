"""A ledger file, completed from Spark's offset log."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.gate.ledger import Audit, Life, audit, disagreements, lives
from spillway.gate.offsets import Offset, decode
from spillway.hosts.spark.checkpoint import logged_batches
from spillway.lines import whole_lines


def read_ledger(path: Path) -> list[Offset]:
    """Every whole line of a ledger. A line that a kill has torn is the last one and is left out."""
    if not path.is_file():
        raise SpillwayError(f"'{path}' is no ledger: give the file of option 'ledger'")
    found = []
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            found.append(decode(json.loads(line)))
        except (ValueError, AttributeError):
            raise SpillwayError(f"line {number} of '{path}' is no offset: it is damaged") from None
    return found


def chains(path: Path, checkpoint: Path | None) -> Mapping[Life, list[Offset]]:
    """Each gate's finished batches; the checkpoint adds what the ledger has not got yet."""
    return lives([*read_ledger(path), *_completed(checkpoint)])


def audits(path: Path, checkpoint: Path | None) -> list[Audit]:
    archived, logged = read_ledger(path), _completed(checkpoint)
    chains_archived, chains_logged, found = lives(archived), lives(logged), []
    for life, chain in lives([*archived, *logged]).items():
        result = audit(chain)
        differ = disagreements(chains_archived.get(life, ()), chains_logged.get(life, ()))
        found.append(replace(result, problems=result.problems + differ))
    return found


def _completed(checkpoint: Path | None) -> list[Offset]:
    if checkpoint is None:
        return []
    batches = [batch for batch in logged_batches(checkpoint) if batch.completed]
    return [offset for batch in batches for offset in batch.gates()]
