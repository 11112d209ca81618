"""Calls function(rows, batch_id) with every batch, a pyarrow Table.

At least once: a batch that is run again after a crash comes again with the same id. A function
that remembers the last id it finished, together with what it did, makes it exactly once. Where a
query moves while it runs, two of its checkpoints count their batches at the same time: with
`generations` the function is told which one as its third argument.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.options import Option
from spillway.sinks.fence import Fence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS: tuple[Option, ...] = (
    Option(
        "call",
        "text",
        "the function; modules of the current folder are found too",
        required=True,
        pattern=r"^[\w.]+:\w+$",
        example="module:function",
    ),
    Option(
        "generations",
        "flag",
        "call function(rows, batch_id, generation): ids count for each generation by itself",
        default=False,
    ),
)
GUARANTEE = "at least once: function(rows, batch_id) is called again with the same batch_id"


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    return _opened(query, given, generation=1)


def open_fenced_sink(query: str, given: Mapping[str, Any], fence: Fence) -> Callable[[Any], Any]:
    return _opened(query, given, fence.generation)


def _opened(query: str, given: Mapping[str, Any], generation: int) -> Callable[[Any], Any]:
    function = load_function(query, given["call"])
    last = (generation,) if given["generations"] else ()

    def write(rows: DataFrame, batch_id: int) -> None:
        function(rows.toArrow(), batch_id, *last)

    return lambda writer: writer.foreachBatch(write)


def load_function(name: str, call: str) -> Callable[..., object]:
    """The function that 'module:function' names; modules of the current folder are found too."""
    where = f"queries.{name}.sink.call is '{call}'"
    module_name, _, function_name = call.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise SpillwayError(
            f"{where}: module '{module_name}' cannot be imported ({error}); install it, or run in"
            " the folder that holds it"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise SpillwayError(f"{where}: '{module_name}' has no function '{function_name}'")
    checked: Callable[..., object] = function
    return checked
