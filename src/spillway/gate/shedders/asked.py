"""The options `shedder`, `key`, `utility`, `window` and `epoch` of a gate, as a selection."""

from collections.abc import Mapping

from spillway.errors import SpillwayError, unknown_name
from spillway.gate.shedders.expressions import columns_of
from spillway.gate.shedders.selection import SHEDDERS, Selection
from spillway.model import parse_duration_s

DEFAULT_EPOCH = "1m"


def asked_selection(options: Mapping[str, str], event_time: str | None) -> Selection | None:
    """None for a uniform sample, which looks at positions alone."""
    name = options.get("shedder", "uniform")
    if name not in SHEDDERS:
        raise unknown_name("shedder", name, SHEDDERS)
    if name == "uniform":
        return None
    if name == "utility":
        expression = _required(options, name, "utility", "an expression such as 'price * volume'")
        columns_of(expression)
        return Selection(shedder="utility", column=expression)
    if name == "strata":
        return Selection(shedder="strata", column=_key(options, name))
    if name == "key":
        return Selection(
            shedder="key",
            column=_key(options, name),
            time_column=event_time or "_arrival",
            length_us=_length_us(options.get("epoch", DEFAULT_EPOCH), "epoch"),
        )
    if event_time is None:
        raise SpillwayError(
            "shedder 'windows' needs the event time: name its column with option 'heartbeat'"
            " (event_time in a flow file)"
        )
    length = _required(options, name, "window", "the length of the query's window, such as '10s'")
    return Selection(shedder="windows", column=event_time, length_us=_length_us(length, "window"))


def _key(options: Mapping[str, str], shedder: str) -> str:
    return _required(options, shedder, "key", "the column whose values make the groups")


def _length_us(text: str, option: str) -> int:
    return round(parse_duration_s(text, f"option '{option}'") * 1e6)


def _required(options: Mapping[str, str], shedder: str, option: str, what: str) -> str:
    if not options.get(option):
        raise SpillwayError(f"shedder '{shedder}' needs option '{option}': {what}")
    return options[option]
