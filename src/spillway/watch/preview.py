"""What a new target would cost, by the last minutes of the journal.

In a process of its own: it computes for seconds, and the run needs the driver's Python.

python -m spillway.watch.preview JOURNAL < {"started": {...}, "targets": {"gold": "p99 1s"}}
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.journal.recent import recent_entries
from spillway.model import Decided, Target
from spillway.watch.what_if import what_if

MINUTES = 5.0
_WAIT_S = 60.0
_NICE = 10


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Ratios of all tuples over the last minutes, in virtual time and as recorded."""

    seconds: float
    recorded_shed_ratio: float
    shed_ratio_now: float
    shed_ratio: float
    late_ratio_now: float
    late_ratio: float


def preview_of(
    decided: list[Decided], started: Mapping[str, Any], targets: Mapping[str, str]
) -> Preview:
    last_s = max((d.measurement.time_s for d in decided), default=0.0)
    recent = [d for d in decided if d.measurement.time_s > last_s - 60.0 * MINUTES]
    found = what_if(recent, started, targets)
    [wanted] = found.others
    return Preview(
        seconds=found.seconds,
        recorded_shed_ratio=found.recorded.shed_ratio,
        shed_ratio_now=found.again.shed_ratio,
        shed_ratio=wanted.shed_ratio,
        late_ratio_now=found.again.late_ratio,
        late_ratio=wanted.late_ratio,
    )


def previewed(journal: Path, started: Mapping[str, Any], targets: Mapping[str, str]) -> Preview:
    """Elsewhere, and after everything else on the machine."""
    for text in targets.values():
        Target.parse(text)
    command = [sys.executable, "-m", "spillway.watch.preview", str(journal)]
    given = json.dumps({"started": started, "targets": targets})
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_WAIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SpillwayError(
            f"a preview takes longer than {_WAIT_S:.0f} s on this machine"
        ) from error
    if done.returncode != 0:
        raise SpillwayError(done.stderr.strip().splitlines()[-1] if done.stderr else "no preview")
    return Preview(**json.loads(done.stdout))


def main() -> int:
    os.nice(_NICE)
    given = json.load(sys.stdin)
    decided = [e for e in recent_entries(Path(sys.argv[1])) if isinstance(e, Decided)]
    try:
        found = preview_of(decided, given["started"], given["targets"])
    except SpillwayError as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(asdict(found), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
