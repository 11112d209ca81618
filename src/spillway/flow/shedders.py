"""The shedder that a stream asks for."""

from spillway.flow.flow import Stream
from spillway.gate.shedders import catalog
from spillway.gate.shedders.shedder import Shedder


def shedder_options(stream: Stream) -> dict[str, str]:
    """The gate's options for it."""
    names = ("shedder", *(option.name for option in catalog.options()))
    options = {name: getattr(stream, name) for name in names}
    return {name: value for name, value in options.items() if value is not None}


def selection_of(stream: Stream) -> Shedder | None:
    """None: it looks at no data."""
    return catalog.asked_shedder(shedder_options(stream), stream.event_time)
