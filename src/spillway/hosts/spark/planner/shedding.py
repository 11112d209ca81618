"""The planner's side of shedders that look at the data: it reads the columns that they look at."""

from collections.abc import Mapping

import pyarrow as pa

from spillway.errors import unknown_name
from spillway.gate.offsets import Offset
from spillway.gate.sampling import PPM
from spillway.gate.shedders.planned import selected
from spillway.gate.shedders.shedder import Shedder
from spillway.logs import catalog
from spillway.ports import Log

_ARRIVAL = "_arrival"  # every log delivers it


class Shedding:
    def __init__(
        self, selection: Shedder, options: Mapping[str, str], columns: pa.Schema | Log
    ) -> None:
        schema = columns if isinstance(columns, pa.Schema) else columns.columns()
        wanted = [name for name in selection.columns if name != _ARRIVAL]
        for name in wanted:
            if name not in schema.names:
                raise unknown_name(f"column of shedder '{selection.name}'", name, schema.names)
        self._selection = selection
        self._log = catalog.open_log(options, pa.schema([schema.field(name) for name in wanted]))

    def selected(self, offset: Offset, previous: Offset, led: float | None) -> Offset:
        """The planned offset with its selection; `led` is the share of the gate that leads."""
        limit_ppm = None if led is None else round(led * PPM)
        return selected(offset, previous, self._selection, self._log, limit_ppm=limit_ppm)

    def share(self, offset: Offset, share: float) -> float:
        """What the other gates of a join follow: the limit, so that they keep the same keys."""
        keys = offset.rule.selection.whole_keys if offset.rule.selection else None
        return share if keys is None else keys.limit_ppm / PPM
