"""The reader in Python: the fallback, and the reference for the native one."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from spillway.errors import SpillwayError
from spillway.logs.dead_letters import Malformed
from spillway.logs.intervals import Positions
from spillway.logs.kafka_client import ENDS_TIMEOUT_S, POLL_S, READER, Piece
from spillway.logs.kafka_form import Form
from spillway.logs.kafka_options import Config
from spillway.logs.kafka_rows import raw_array
from spillway.logs.schema import ARRIVAL, BATCH_ROWS, with_arrival


class PythonClient:
    def __init__(self, config: Config) -> None:
        self.complaint = ""
        try:
            self._consumer = Consumer({**dict(config), **READER, "error_cb": self._complain})
        except KafkaException as error:
            raise SpillwayError(f"Kafka option refused: {error.args[0].str()}") from error

    def assign(self, topic: str, partition: int, offset: int) -> None:
        self._consumer.assign([TopicPartition(topic, partition, offset)])

    def unassign(self) -> None:
        self._consumer.unassign()

    def piece(self, form: Form, following: int, stop: int, wanted: Positions | None) -> Piece:
        with _no_collection():
            records, ended, astray = self._next(following, stop)
            following = records[-1].offset() + 1 if records else following
            chosen = records if wanted is None else _only(records, wanted)
            if not chosen:
                return Piece(following=following, ended=ended, astray=astray)
            rows, malformed = _rows(form, chosen)
            return Piece(
                following=following,
                ended=ended,
                astray=astray,
                rows=rows,
                malformed=malformed,
                reached=chosen[-1].offset() + 1,
            )

    def ends(self, topic: str, partition: int) -> tuple[int, int] | None:
        try:
            place = TopicPartition(topic, partition)
            found = self._consumer.get_watermark_offsets(place, timeout=ENDS_TIMEOUT_S)
        except KafkaException as error:
            self._complain(error.args[0])
            return None
        return found if found and min(found) >= 0 else None

    def _next(self, following: int, stop: int) -> tuple[list[Any], bool, bool]:
        """Records of [following, stop); whether that was all; whether the log has no such place."""
        records: list[Any] = []
        messages: Sequence[Any] = self._consumer.consume(min(BATCH_ROWS, stop - following), POLL_S)
        for message in messages:
            error = message.error()
            if error is None and following <= message.offset() < stop:
                records.append(message)
                following = message.offset() + 1
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                if message.offset() >= stop:
                    return records, True, False
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                return records, False, True
            else:
                self._complain(error)
        return records, False, False

    def _complain(self, error: Any) -> None:
        self.complaint = f" ({error.str()})"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Tens of thousands of new objects set the collector off again and again: it finds nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _only(records: Sequence[Any], wanted: Positions) -> Sequence[Any]:
    offsets = np.fromiter((record.offset() for record in records), dtype=np.int64)
    places = np.minimum(np.searchsorted(wanted, offsets), len(wanted) - 1)
    return [records[i] for i in np.flatnonzero(wanted[places] == offsets).tolist()]


def _rows(form: Form, records: Sequence[Any]) -> tuple[pa.RecordBatch, list[Malformed]]:
    malformed: list[Malformed] = []
    if form.raw:
        stamps = [record.timestamp() for record in records]
        arrays = [raw_array(field, records, stamps) for field in form.schema]
    else:
        values = [record.value() for record in records]
        decoded = form.decoder.decode(values)
        malformed = [
            Malformed(position=records[i].offset(), reason=reason, raw=values[i])
            for i, reason in decoded.bad.items()
        ]
        records = [records[i] for i in decoded.good] if malformed else records
        arrays = [column.combine_chunks() for column in decoded.rows.columns]
        stamps = [record.timestamp() for record in records]
    arrival_ms = np.array([stamp[1] for stamp in stamps], dtype=np.int64)
    arrays.append(pa.array(arrival_ms * 1000).view(ARRIVAL.type))
    return pa.RecordBatch.from_arrays(arrays, schema=with_arrival(form.schema)), malformed
