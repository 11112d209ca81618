"""Options of Kafka's Java client, as jobs of Spark's have them, in librdkafka's words."""

import re
from collections.abc import Mapping

from spillway.errors import SpillwayError

_RENAMED = {  # name for name, with the same values
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_OF_NO_USE = {  # a reader of ranges polls for no group, and TLS has its own ways in C
    *("default.api.timeout.ms", "exclude.internal.topics", "max.poll.records"),
    *("interceptor.classes", "metric.reporters", "security.providers"),
    *("ssl.enabled.protocols", "ssl.protocol", "ssl.truststore.type", "ssl.keystore.type"),
}
_CERTIFICATE = "kafka.ssl.certificate.location and kafka.ssl.key.location (PEM files)"
_INSTEAD = {
    "ssl.truststore.location": "kafka.ssl.ca.location (a PEM file)",
    "ssl.truststore.password": "kafka.ssl.ca.location (a PEM file), which has none",
    "ssl.keystore.location": f"{_CERTIFICATE}, or a keystore of type PKCS12",
}
_LOGIN = re.compile(r"(?:\w+\.)*(PlainLoginModule|ScramLoginModule)\s+(?:required|requisite)\b(.*)")
_SAID = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


def translated(given: Mapping[str, str]) -> dict[str, str]:
    """Raises for what the client library has no words for."""
    found: dict[str, str] = {}
    for name, value in given.items():
        if name in _OF_NO_USE:
            continue
        if name == "sasl.jaas.config":
            found |= _login(value)
        elif name == "ssl.truststore.location" and _type(given, "truststore") == "PEM":
            found["ssl.ca.location"] = value
        elif name == "ssl.keystore.location" and _type(given, "keystore") == "PKCS12":
            found[name] = value
        elif name == "ssl.endpoint.identification.algorithm":
            found[name] = value.lower() or "none"
        elif name in _INSTEAD:
            raise SpillwayError(
                f"option 'kafka.{name}' is for Java clients only: use {_INSTEAD[name]}"
            )
        else:
            found[_RENAMED.get(name, name)] = value
    _refuse_msk_iam(found)
    return found


def _type(given: Mapping[str, str], store: str) -> str:
    return given.get(f"ssl.{store}.type", "JKS").upper()


def _login(text: str) -> dict[str, str]:
    """User and password of a line for Java's login modules."""
    found = _LOGIN.match(text.strip())
    said = dict(_SAID.findall(found[2])) if found else {}
    if "username" not in said or "password" not in said:
        raise SpillwayError(
            "option 'kafka.sasl.jaas.config' is for Java clients only, apart from user and password"
            " of PlainLoginModule and ScramLoginModule: use kafka.sasl.username and"
            " kafka.sasl.password, kafka.sasl.kerberos.* or kafka.sasl.oauthbearer.*"
        )
    return {
        f"sasl.{name}": re.sub(r"\\(.)", r"\1", said[name]) for name in ("username", "password")
    }


def _refuse_msk_iam(found: Mapping[str, str]) -> None:
    if found.get("sasl.mechanism", "").upper() == "AWS_MSK_IAM":
        raise SpillwayError(
            "option 'kafka.sasl.mechanism' is 'AWS_MSK_IAM', which Kafka's client library for C"
            " does not know: use SASL/SCRAM or TLS certificates of the same cluster"
        )
