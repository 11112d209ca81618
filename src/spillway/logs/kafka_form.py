"""What becomes of a topic's records: columns of their JSON or Avro values, or their raw parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.logs.avro_schemas import Schemas
from spillway.logs.json_rows import Decoded, JsonDecoder

if TYPE_CHECKING:
    from spillway.logs.avro_rows import AvroDecoder


class Reference(Protocol):
    """Says what the rows are, and which records are malformed, for both readers."""

    def decode(self, values: Sequence[bytes | None]) -> Decoded: ...


@dataclass(frozen=True, kw_only=True)
class Form:
    topic: str
    schema: pa.Schema  # without `_arrival`
    raw: bool
    avro: Schemas | None = None  # None: JSON

    @property
    def decoder(self) -> Reference:
        if self.avro is None:
            return _json_decoder(self.schema)
        return avro_decoder(self.schema, self.avro)


@lru_cache(maxsize=32)
def _json_decoder(schema: pa.Schema) -> JsonDecoder:
    return JsonDecoder(schema)


@lru_cache(maxsize=32)
def avro_decoder(schema: pa.Schema, schemas: Schemas) -> "AvroDecoder":
    """One for a process: it learns which schemas there are."""
    try:
        from spillway.logs.avro_rows import AvroDecoder
    except ImportError as error:
        raise SpillwayError(
            f"option 'decode' is 'avro', which needs package '{error.name}':"
            " pip install 'spillway-spark[kafka]'"
        ) from None
    return AvroDecoder(schema, schemas)
