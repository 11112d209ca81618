"""Options of a Kafka client, of the source's and of the sink's: librdkafka's names and values."""

from collections.abc import Mapping

from spillway.logs.java_client import translated

Config = tuple[tuple[str, str], ...]  # hashable: the key of a process's connections


def checked_config(given: Mapping[str, str], defaults: Mapping[str, str]) -> Config:
    """What options named `kafka.` say, over the defaults; the Java client's words are taken."""
    return tuple(sorted({**defaults, **translated(given)}.items()))
