"""Options of Kafka's Java client, as jobs of Spark's have them."""

import pytest
from confluent_kafka import Consumer

from spillway.errors import SpillwayError
from spillway.logs.java_client import translated

JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required {};"
DATABRICKS = "kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule required {};"


@pytest.mark.parametrize("module", [JAAS, DATABRICKS])
def test_user_and_password_of_a_login_module_are_taken(module: str) -> None:
    said = module.format('username="ann" password="a\\"b;c"')
    found = translated({"sasl.jaas.config": said, "sasl.mechanism": "SCRAM-SHA-512"})
    assert found == {
        "sasl.username": "ann",
        "sasl.password": 'a"b;c',
        "sasl.mechanism": "SCRAM-SHA-512",
    }


def test_pem_stores_are_taken_and_what_a_reader_does_not_need_is_left_out() -> None:
    found = translated(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/etc/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
            "max.poll.records": "500",
            "fetch.max.wait.ms": "100",
        }
    )
    assert found == {
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "fetch.wait.max.ms": "100",
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"sasl.jaas.config": "com.sun.security.Krb5LoginModule required;"},
            "kerberos",
        ),
        ({"ssl.truststore.location": "/ca.jks"}, "use kafka.ssl.ca.location"),
        ({"ssl.keystore.location": "/k.jks"}, "or a keystore of type PKCS12"),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "use SASL/SCRAM or TLS certificates"),
    ],
)
def test_what_the_library_has_no_words_for_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(SpillwayError, match=told):
        translated(given)


def test_the_library_takes_what_comes_out() -> None:
    given = {
        "receive.buffer.bytes": "100000",
        "send.buffer.bytes": "100000",
        "default.api.timeout.ms": "60000",
        "ssl.protocol": "TLSv1.3",
        "session.timeout.ms": "30000",
        "max.partition.fetch.bytes": "1048576",
    }
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **translated(given)}).close()
