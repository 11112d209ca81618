"""A topic made anew that is longer than our position was read on, without its first records.

Where the brokers do not tell the topic's id, the gate goes on without it and says so once.
"""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from spillway.errors import SpillwayError
from spillway.logs import saying
from spillway.logs.kafka_watch import TopicWatch

CONFIG = (("bootstrap.servers", "127.0.0.1:1"), ("log_level", "0"))


def refused(code: int) -> Callable[[], str]:
    def described() -> str:
        raise KafkaException(KafkaError(code))

    return described


def test_a_refused_id_is_said_once_and_the_query_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(saying, "_said", set())
    for _ in range(3):
        watch = TopicWatch(CONFIG, "t", outage_s=2.0, topic_id="one")
        monkeypatch.setattr(watch, "_described_id", refused(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        assert watch.topic_id() is None
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "does not tell the id of topic 't'" in said[0]


def test_silent_brokers_are_no_other_topic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = TopicWatch(CONFIG, "t", outage_s=2.0, topic_id="one")
    monkeypatch.setattr(watch, "_described_id", refused(KafkaError._TIMED_OUT))
    assert watch.topic_id() is None
    assert capsys.readouterr().err == ""


def test_brokers_that_know_no_ids_pin_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = TopicWatch(CONFIG, "t", outage_s=2.0)
    monkeypatch.setattr(watch, "_described_id", lambda: "A" * 22)
    assert watch.topic_id() is None


def test_the_first_id_that_is_seen_is_the_one_that_is_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = TopicWatch(CONFIG, "t", outage_s=2.0)
    monkeypatch.setattr(watch, "_described_id", lambda: "one")
    assert watch.topic_id() == "one"
    monkeypatch.setattr(watch, "_described_id", lambda: "two")
    with pytest.raises(SpillwayError, match=r"'t' was made anew.* id one, .*with a new checkpoint"):
        watch.topic_id()
