"""Options of a Kafka client, of the source's and of the sink's: librdkafka's names and values."""

from collections.abc import Mapping

from spillway.errors import SpillwayError

Config = tuple[tuple[str, str], ...]  # hashable: the key of a process's connections

_JAVA_ONLY = {
    "sasl.jaas.config": "kafka.sasl.username and kafka.sasl.password",
    "ssl.truststore.location": "kafka.ssl.ca.location (a PEM file)",
    "ssl.keystore.location": "kafka.ssl.certificate.location and kafka.ssl.key.location",
}


def checked_config(given: Mapping[str, str], defaults: Mapping[str, str]) -> Config:
    """What options named `kafka.` say, over the defaults."""
    for name, instead in _JAVA_ONLY.items():
        if name in given:
            raise SpillwayError(f"option 'kafka.{name}' is for Java clients only: use {instead}")
    return tuple(sorted({**defaults, **given}.items()))
