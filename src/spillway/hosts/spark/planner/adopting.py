"""A checkpoint that Spark's own Kafka source wrote, taken over as it is.

Its offsets say where every partition stood and nothing else. They become offsets of the gate, whose
first batch begins there; a batch that was logged and not completed is run again, whole and exactly
as it was cut. What else is in the checkpoint, state and watermark, is the query's and stays.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule, Stretch
from spillway.hosts.spark.planner.starts import first_positions
from spillway.hosts.spark.planner.stream import identity, kept_options
from spillway.logs import catalog
from spillway.logs.topics import order_of

Encoded = dict[str, Any]


class Adopting:
    """The same offset comes several times and is the same each time."""

    def __init__(
        self, options: Mapping[str, str], gate: GateOptions, schema: pa.Schema | None, now_s: float
    ) -> None:
        if options.get("source") != "kafka":
            raise SpillwayError(
                "this checkpoint was written by Spark's own Kafka source, but option 'source' is"
                f" '{options.get('source')}': read the topics that it has read, or start with a new"
                " checkpoint"
            )
        self._gate, self._now_us = gate, round(now_s * 1e6)
        self._name = gate.gate or uuid4().hex[:12]
        pinned = catalog.pinned(options, now_s)
        log = catalog.open_log(pinned, schema)
        self._pinned = kept_options(options, pinned | identity(log))
        self._topics = order_of({**pinned, **identity(log)})
        self._extent = log.extent(now_s)
        self._known: dict[str, Offset] = {}

    def at(self, logged: Encoded) -> Encoded:
        """Where the gate begins: all that was read before is Spark's own."""
        key = _key(logged)
        if key not in self._known:
            stretches = (
                Stretch(partition=p, start=at, read=at, stop=at) for p, at in self._places(logged)
            )
            self._known[key] = self._offset(0, tuple(stretches), Totals(), "start")
        return encode(self._known[key])

    def between(self, start: Encoded, end: Encoded) -> Encoded:
        """The batch that Spark's own source has logged and not completed: all of it is kept."""
        key = _key(end)
        if key not in self._known:
            began = dict(self._places(start))
            stretches = tuple(
                Stretch(partition=p, start=began[p], read=began[p], stop=max(stop, began[p]))
                for p, stop in self._places(end)
            )
            tuples = sum(stretch.tuples for stretch in stretches)
            totals = Totals(offered=tuples, admitted=tuples)
            said = "logged by Spark's own source: kept whole"
            self._known[key] = self._offset(1, stretches, totals, said)
        return encode(self._known[key])

    def _offset(
        self, seq: int, stretches: tuple[Stretch, ...], totals: Totals, reason: str
    ) -> Offset:
        return Offset(
            gate=self._name,
            began_us=self._now_us,
            seq=seq,
            planned_us=self._now_us,
            stretches=stretches,
            rule=Rule(seed=self._gate.seed, policy=self._gate.policy, reason=reason),
            totals=totals,
            pinned=self._pinned,
        )

    def _places(self, logged: Encoded) -> list[tuple[int, int]]:
        try:
            found = first_positions(json.dumps(logged), self._extent, self._topics)
        except SpillwayError as error:
            said = str(error).replace("option 'startingOffsets'", "its offset log")
            raise SpillwayError(
                f"this checkpoint of Spark's own Kafka source cannot be taken over: {said}"
            ) from None
        return list(found.items())


def _key(logged: Encoded) -> str:
    return json.dumps(logged, sort_keys=True)
