"""Appends files to a folder: Spark's own file sink."""

from collections.abc import Callable, Mapping
from typing import Any

from spillway.options import Option

OPTIONS: tuple[Option, ...] = (Option("path", "text", "the folder", required=True),)
GUARANTEE = "exactly once, for readers that follow Spark's `_spark_metadata`"


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda writer: writer.format("parquet").option("path", given["path"])
