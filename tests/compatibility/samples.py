"""What this release writes, one file a format: python tests/compatibility/samples.py FOLDER."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spillway.coding import to_json
from spillway.gate.offsets import Arrived, Gap, Offset, Totals, encode
from spillway.gate.rules import Rule, Stretch
from spillway.gate.shedders.key import Key
from spillway.handover import Owned
from spillway.hosts.cluster.messages import NODE, QUERY, Assignment, NodeReport, Seen, Successor
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.records import encoded as record_line
from spillway.journal.entries import Event, encoded
from spillway.lines import line_of
from spillway.model import (
    Backlog,
    BatchRecord,
    Decided,
    Decision,
    KeepFraction,
    KeepOfBacklog,
    Measurement,
    Prices,
    Target,
)

NOW_S, NOW_US = 1_795_019_742.5, 1_795_019_742_500_000


def offsets() -> list[Offset]:
    """Three batches of one gate: the first, one that was shed from, one of chosen keys."""
    first = Offset(
        gate="q/s",
        began_us=NOW_US,
        seq=0,
        planned_us=NOW_US,
        stretches=(Stretch(partition=0, start=5, read=5, stop=5),),
        rule=Rule(seed=7, reason="start"),
        pinned={"source": "kafka", "topic": "orders"},
    )
    shed = Offset(
        gate="q/s",
        began_us=NOW_US,
        seq=1,
        planned_us=NOW_US + 2_000_000,
        stretches=(Stretch(partition=0, start=5, read=7, stop=105),),
        rule=Rule(keep_ppm=400_000, seed=7, reason="what fits in 2 s", would_keep_ppm=400_000),
        totals=Totals(offered=120, admitted=40, shed=60, lost=2),
        prices=Prices(fixed_s=0.25, kept_s=3e-6, scanned_s=1e-8),
        arrived=Arrived(
            mean_us=NOW_US, p05_us=NOW_US - 9, p01_us=NOW_US - 10, first_us=NOW_US - 11
        ),
        gap=Gap(from_us=0, until_us=NOW_US),
        instances=3,
        pinned=first.pinned,
        ends={0: 125},
        owned=Owned(from_us=NOW_US, until_us=NOW_US + 60_000_000),
    )
    chosen = Offset(
        gate="q/s",
        began_us=NOW_US,
        seq=2,
        planned_us=NOW_US + 4_000_000,
        stretches=(Stretch(partition=0, start=105, read=105, stop=125),),
        rule=Rule(
            keep_ppm=500_000,
            seed=7,
            reason="half",
            selection=Key(column="city", time_column="_arrival", length_us=60_000_000),
        ),
        totals=Totals(offered=120, admitted=50, shed=70, lost=2),
        pinned=first.pinned,
        ends={0: 125},
    )
    return [first, shed, chosen]


def entries() -> list[Event | Decided]:
    measured = Measurement(
        time_s=NOW_S,
        period_s=1.0,
        target=Target.parse("p99 2s"),
        offered_tuples=100,
        admitted_tuples=40,
        shed_tuples=60,
        completed_tuples=40,
        queued_tuples=0,
        queued_load_s=0.0,
        offered_load=1.5,
        admitted_load=0.6,
        cost_s=3e-6,
        delay_s=1.25,
        busy_s=0.5,
        backlog=Backlog(pending_tuples=20, mean_age_s=0.5, statistic_age_s=0.9, oldest_age_s=1.0),
        batches=(BatchRecord(kept_tuples=40, scanned_tuples=98, duration_s=0.5, ended_s=NOW_S),),
        prices=Prices(fixed_s=0.25, kept_s=3e-6, scanned_s=1e-8),
        class_name="gold",
        query="q",
    )
    fraction = Decision(action=KeepFraction(fraction=0.4), reason="what fits in 2 s")
    backlog = Decision(action=KeepOfBacklog(tuples=20), reason="all that waits", headroom=0.9)
    classes = {"gold": {"delay": "p99 2s", "priority": 6}}
    return [
        Event(time_s=NOW_S, kind="started", fields={"queries": ["q"], "classes": classes}),
        Decided(measurement=measured, decision=fraction),
        Decided(measurement=measured, decision=backlog),
        Event(time_s=NOW_S, kind="changed", fields={"key": "gold.delay", "to": "1s", "by": "ada"}),
    ]


def records() -> list[Record]:
    report = NodeReport(
        life="a1",
        lease_s=10.0,
        state="running",
        applied=4,
        running={"q": 2},
        states={"q": "running"},
        seen={"q": Seen(admitted_tuples=40, shed_tuples=60, delay_s=1.25, reason="what fits")},
        machine="host",
        time_s=NOW_S,
    )
    body = {"sql": "SELECT * FROM s", "class": "gold"}
    moving = Successor(query=body, generation=2, node="node-2", life="b1", state="cuts")
    given = Assignment(query=body, state="runs", node="node-1", life="a1", epoch=2, next=moving)
    bodies = {
        f"{NODE}node-1": to_json(NodeReport, report),
        f"{QUERY}q": to_json(Assignment, given),
        "leader": None,
    }
    return [
        Record(cluster="shop", key=key, epoch=epoch, writer="x", body=body)
        for epoch, (key, body) in enumerate(bodies.items(), start=1)
    ]


def _lines(values: Iterable[Any]) -> bytes:
    return b"".join(line_of(value) + b"\n" for value in values)


def written() -> dict[str, bytes]:
    """Name of the file -> what is in it."""
    ledger = _lines(encode(offset) for offset in offsets())
    return {
        "ledger.jsonl": ledger,
        "journal.jsonl": _lines(encoded(entry) for entry in entries()),
        "control-log.jsonl": b"".join(record_line(record) + b"\n" for record in records()),
        "overrides.json": json.dumps(
            {"gold.delay": {"to": "1s", "by": "ada", "time_s": NOW_S}}, indent=1
        ).encode(),
    }


if __name__ == "__main__":
    for name, data in written().items():
        (Path(sys.argv[1]) / name).write_bytes(data)
