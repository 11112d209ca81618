"""Secrets by name, by value and in URLs: nothing that is said or written shows them."""

import json
from pathlib import Path

import pytest

from spillway import redaction
from spillway.errors import SpillwayError
from spillway.journal.files import FileJournal
from spillway.logs import catalog
from spillway.logs.saying import say_once
from spillway.options import Option, read
from spillway.redaction import is_secret, redacted, remember


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())


@pytest.mark.parametrize(
    "name",
    [
        *("kafka.sasl.password", "kafka.ssl.key.password", "sasl.oauthbearer.client.secret"),
        *("spark.hadoop.fs.s3a.secret.key", "fs.s3a.access.key", "apiKey", "token", "ssl.key.pem"),
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["key", "topic", "kafka.bootstrap.servers", "rate", "partitions"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to postgresql://me:hunter2@h:5432/db", "to postgresql://***:***@h:5432/db"),
        (
            "jdbc:postgresql://h/db?user=me&password=hunter2",
            "jdbc:postgresql://h/db?user=me&password=***",
        ),
        ("at 'http://h:80/x' and 'a@b'", "at 'http://h:80/x' and 'a@b'"),
    ],
)
def test_passwords_in_urls_are_left_out(text: str, expected: str) -> None:
    assert redacted(text) == expected


def test_a_log_that_is_opened_makes_its_secrets_known() -> None:
    options = {
        "source": "kafka",
        "topic": "t",
        "kafka.bootstrap.servers": "h:9",
        "kafka.sasl.password": "hunter2",
    }
    catalog.open_log(options)
    assert "hunter2" not in str(SpillwayError("the broker said: wrong password hunter2"))
    assert redacted("topic t") == "topic t"


def test_the_journal_and_what_workers_say_show_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember({"kafka.sasl.password": "hunter2"})
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.event(1.0, "restarted", query="q", error="login with hunter2 failed")
    assert json.loads((tmp_path / "journal.jsonl").read_text())["error"] == "login with *** failed"
    say_once("no login with hunter2")
    assert "hunter2" not in capsys.readouterr().err


def test_a_bad_value_of_a_secret_is_not_repeated() -> None:
    option = Option("password", "whole", "a number for once")
    with pytest.raises(SpillwayError, match=r"option 'password' is \*\*\*"):
        read([option], {"password": "hunter2"})
