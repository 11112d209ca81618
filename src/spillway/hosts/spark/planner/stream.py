"""The log behind a gate, as its planner looks at it: where it starts, what waits, what is in it."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from spillway.errors import SpillwayError, unknown_name
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting, survey
from spillway.gate.sampling import PPM
from spillway.gate.shedders.planned import selected
from spillway.gate.shedders.shedder import Shedder
from spillway.logs import catalog
from spillway.logs.topics import order_of, said
from spillway.ports import Growing, Identified, Log, Span

# What may not change under a checkpoint.
_IDENTITY = ("source", "topic", "subscribepattern", "assign", "path")
_ARRIVAL = "_arrival"  # every log delivers it

_SHORT_S = 30.0  # a log that ends below our position for so long will not come back


class Stream:
    """`may_fall`: the log's end follows the clock, so a clock that jumps back takes it along."""

    def __init__(
        self,
        log: Log,
        gate: GateOptions,
        may_fall: bool,
        elapsed: Callable[[], float],
        frozen: tuple[Span, ...] | None = None,
    ) -> None:
        self.log = log
        self._identity = identity(log)  # in the offsets of earlier releases it is missing
        self._gate = gate
        self._may_fall = may_fall
        self._elapsed = elapsed
        self._frozen = frozen  # what there was when a run of AvailableNow began
        self._short_since_s: float | None = None  # the log has ended below our position

    def identity(self, *, frozen: bool = False) -> Mapping[str, str]:
        """With what has come to the log by now: a batch that is planned may read it."""
        if isinstance(self.log, Growing) and not frozen:
            self._identity |= self.log.grown()
        return self._identity

    def survey(
        self,
        previous: Offset,
        now_s: float,
        *,
        frozen: bool = False,
        bound: Mapping[int, int] | None = None,
    ) -> Waiting:
        """What no batch has consumed; frozen: of what was there at the first look; `bound`: of each
        partition only what lies before."""
        extent = self.log.extent(now_s) if self._frozen is None or not frozen else self._frozen
        if frozen:
            self._frozen = extent
        self._require_reached(previous, extent)
        waiting = survey(previous, extent, self.log.arrivals, bound)
        if waiting.lost_tuples > 0 and self._gate.fail_on_data_loss:
            raise SpillwayError(
                f"the log dropped {waiting.lost_tuples} tuples before they were read: option"
                " 'failOnDataLoss' is true; set it to false to count them as shed and go on"
            )
        return waiting

    def _require_reached(self, previous: Offset, extent: tuple[Span, ...]) -> None:
        """A lagging replica may end below our position for a moment, a new topic does for good."""
        reached = {s.partition: s.stop for s in previous.stretches}
        short = [span for span in extent if span.stop < reached.get(span.partition, 0)]
        if not short or self._may_fall:
            self._short_since_s = None
            return
        if self._short_since_s is None:
            self._short_since_s = self._elapsed()
        if self._elapsed() - self._short_since_s > _SHORT_S:
            first = short[0]
            raise SpillwayError(
                f"partition {said(first.partition, order_of(previous.pinned))} of the log ends at"
                f" {first.stop}, but this checkpoint has read up to {reached[first.partition]}: it"
                " was cut short or made anew; start with a new checkpoint"
            )


def kept_options(options: Mapping[str, str], pinned: Mapping[str, str]) -> dict[str, str]:
    """Of the options of a first start, those that every later one must find in the offset."""
    return {k: v for k, v in pinned.items() if k in _IDENTITY or options.get(k) != v}


def resumed_options(options: Mapping[str, str], pinned: Mapping[str, str]) -> dict[str, str]:
    """The options of a later start, which must be of the same stream."""
    for name in _IDENTITY:
        if name in pinned and options.get(name) != pinned[name]:
            raise SpillwayError(
                f"option '{name}' is '{options.get(name)}', but this checkpoint belongs to"
                f" '{pinned[name]}': keep the option, or start with a new checkpoint"
            )
    return {**options, **pinned}


def identity(log: Log) -> dict[str, str]:
    """What tells this log from a later one of its name; raises where it is a later one."""
    return dict(log.identity()) if isinstance(log, Identified) else {}


def require_the_same(
    options: Mapping[str, str], pinned: Mapping[str, str], schema: pa.Schema | None
) -> None:
    """Raise where a batch that was planned by an earlier run would read another log's rows."""
    identity(catalog.open_log(resumed_options(options, pinned), schema))


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
