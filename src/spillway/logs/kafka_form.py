"""What becomes of a topic's records: columns of their JSON values, or their raw parts."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from spillway.logs.json_rows import JsonDecoder


@dataclass(frozen=True, kw_only=True)
class Form:
    topic: str
    schema: pa.Schema  # without `_arrival`
    raw: bool

    @cached_property
    def decoder(self) -> JsonDecoder:
        return JsonDecoder(self.schema)
