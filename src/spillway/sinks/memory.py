"""Keeps the result as a table with the query's name, on the driver."""

from collections.abc import Callable, Mapping
from typing import Any

from spillway.options import Option

OPTIONS: tuple[Option, ...] = ()
GUARANTEE = "none"
RECOVERS = False  # Spark refuses a checkpoint: the table is gone with the driver


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda writer: writer.format("memory")
