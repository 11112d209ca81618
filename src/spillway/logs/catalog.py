"""Every log by name. A log's module is imported only when it is asked for.

The same string options make the same log anywhere: on the driver, in every worker, and again
after a restart. What would differ from one making to the next (the moment a generated stream
starts) is fixed once by `pinned`; keep the pinned options wherever a restart finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError, unknown_name
from spillway.redaction import remember

if TYPE_CHECKING:
    import pyarrow as pa

    from spillway.options import Option
    from spillway.ports import Log

# One line a log. Each module has OPTIONS and `open_log(options, schema)`.
_BY_THE_CLOCK: Mapping[str, str] = {  # arrivals count from option `start`
    "synthetic": "spillway.logs.synthetic",
    "nexmark": "spillway.logs.nexmark",
    "replay": "spillway.logs.replay",
}
MODULES: Mapping[str, str] = {
    **_BY_THE_CLOCK,
    "kafka": "spillway.logs.kafka",
    "files": "spillway.logs.files",
}
STARTED = tuple(_BY_THE_CLOCK)
MADE_UP = ("synthetic", "nexmark")  # what they hold is known without reading anything


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> Log:
    """The log that option `source` names. Opens no file and no connection.

    `schema` is what the user asked for; None takes the log's own columns. Whether the two agree
    is checked by `columns()`, which raises SpillwayError with the column's name.
    """
    remember(options)
    log: Log = _module(source_of(options)).open_log(options, schema)
    return log


def require_there(options: Mapping[str, str]) -> None:
    """Raise where a log of that name is known not to exist: sooner, and in fewer words, than when
    the query has started. Whether it can be reached at all is the query's to find out."""
    _hook("require_there", options)


def pinned(options: Mapping[str, str], now_s: float) -> dict[str, str]:
    """The options with everything fixed that a later making of the log must find unchanged."""
    fixed = dict(options)
    if source_of(options) in STARTED:
        fixed.setdefault("start", repr(float(now_s)))
    return fixed


def without_consequences(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a log that is only looked into: what is malformed there neither counts nor
    ends a query, because the tuples may yet be shed, or were counted by their own batch."""
    return {k: v for k, v in options.items() if k.lower() not in ("dead_letter", "mode")}


def options_of(source: str) -> tuple[Option, ...]:
    """The options of a log, apart from those of the gate before it."""
    declared: tuple[Option, ...] = _module(source).OPTIONS
    return declared


def require(source: str, options: Mapping[str, Any]) -> None:
    """Raise for options of a log that exclude or need each other. Opens nothing."""
    _hook("require", {**options, "source": source})


def meaning_of(source: str) -> str:
    """What a log is: the first paragraph of its file."""
    return " ".join((_module(source).__doc__ or "").partition("\n\n")[0].split())


def _hook(name: str, options: Mapping[str, Any]) -> None:
    """What a log's module has to say, if it has."""
    said = getattr(_module(source_of(options)), name, None)
    if said is not None:
        said(options)


def _module(source: str) -> Any:
    if source not in MODULES:
        raise unknown_name("log", source, MODULES)
    try:
        return import_module(MODULES[source])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spillway"):
            raise
        raise SpillwayError(
            f"log '{source}' needs the package of module '{error.name}', which is not installed:"
            f" pip install 'spillway-spark[{source}]'"
        ) from None


def source_of(options: Mapping[str, str]) -> str:
    source = options.get("source")
    if source is None:
        raise SpillwayError(
            f"option 'source' is missing: it names the log, one of {', '.join(sorted(MODULES))}"
        )
    if source not in MODULES:
        raise unknown_name("log", source, MODULES)
    return source
