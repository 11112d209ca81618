"""Options of Kafka clients, judged by the client library itself: a client is made and closed again.
No broker is asked."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from spillway.check.document import Location
from spillway.check.sql_problems import Problem
from spillway.errors import shown
from spillway.flow.flow import Flow

_RESET = "auto.offset.reset"
_SERVER = re.compile(r"(?:\w+://)?(?:\[[0-9a-fA-F:]+\]|[^\s:,/]+)(?::[0-9]{1,5})?")


def client_problems(flow: Flow) -> Iterator[Problem]:
    for name, stream in flow.streams.items():
        if stream.source == "kafka":
            given = {key.lower(): str(value) for key, value in stream.options.items()}
            place: Location = ("streams", name, "options")
            servers = given.get("kafka.bootstrap.servers", "")
            yield from _server_problems(place, "kafka.bootstrap.servers", servers)
            yield from _refused(place, given)
    for name, query in flow.queries.items():
        if query.sink.type == "kafka":
            given = {key.lower(): str(value) for key, value in query.sink.options.items()}
            place = ("queries", name, "sink")
            yield from _server_problems(place, "brokers", given.get("brokers", ""))
            yield from _refused(place, given)


def _server_problems(place: Location, key: str, servers: str) -> Iterator[Problem]:
    for server in servers.split(","):
        if not _SERVER.fullmatch(server.strip()):
            said = f"'{shown(server.strip())}', which is no host:port"
            yield Problem(
                place=(*place, key), text=f"{_named(place)}.{key} has {said}: write host:port, ..."
            )


def _refused(place: Location, given: Mapping[str, str]) -> Iterator[Problem]:
    """What the library says of options named `kafka.`; nothing where it is not installed."""
    from spillway.logs.kafka_client import READER, client_config

    own = {k.removeprefix("kafka."): v for k, v in given.items() if k.startswith("kafka.")}
    if _RESET in own and place[0] == "streams":
        said = f"{_named(place)}.kafka.{_RESET}: say it as startingOffsets, latest or earliest"
        yield Problem(place=(*place, f"kafka.{_RESET}"), text=said)
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError:
        return
    config: dict[str, Any] = {**dict(client_config(own)), **READER, "bootstrap.servers": "none:1"}
    try:
        Consumer(config).close()
    except KafkaException as error:
        said = error.args[0].str()
        option = next((f"kafka.{name}" for name in own if f'"{name}"' in said), "")
        where = f".{option}" if option else ""
        at = (*place, option) if option else place
        yield Problem(place=at, text=f"{_named(place)}{where}: the Kafka client refuses it: {said}")


def _named(place: Location) -> str:
    return ".".join(map(str, place))
