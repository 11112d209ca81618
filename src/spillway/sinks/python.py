"""Results handed to a Python function: function(rows: pyarrow.Table, batch_id: int).

At least once: a batch that is run again after a crash comes again with the same id. A function
that remembers the last id it finished, together with what it did, makes it exactly once.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module

import pyarrow as pa
from pyspark.sql import DataFrame

from spillway.errors import SpillwayError


def python_writer(name: str, call: str) -> Callable[[DataFrame, int], None]:
    function = load_function(name, call)

    def write(rows: DataFrame, batch_id: int) -> None:
        function(rows.toArrow(), batch_id)

    return write


def load_function(name: str, call: str) -> Callable[[pa.Table, int], object]:
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
    checked: Callable[[pa.Table, int], object] = function
    return checked
