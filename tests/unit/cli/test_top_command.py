"""`spillway top`: a running flow, by its folder or its address."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parents[1] / "watch"))

from virtual import VirtualWatch

from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer
from spillway.watch.tokens import own_tokens

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Of a flow that runs, reachable from elsewhere: looking needs its token."""
    watched = VirtualWatch(tmp_path)
    watched.advance(80.0)  # into the burst
    tokens = own_tokens(tmp_path / "tokens")
    server = WatchServer(watched, bound(Address(host="0.0.0.0", port=0)), tokens)
    server.start()
    (tmp_path / "watch").write_text(f"http://127.0.0.1:{server.address.port}\n")
    yield tmp_path
    server.stop()


def test_it_shows_who_is_in_trouble_and_why(folder: Path) -> None:
    done = RUNNER.invoke(app, ["top", str(folder), "--once"], env={"COLUMNS": "160"})
    assert done.exit_code == 0, (done.exception, done.output)
    assert "bronze: " in done.output
    assert "[" not in done.output, "markup that nobody renders"
    assert "sheds" in done.output
    for name in ("gold", "silver", "fraud", "volume", "trends", "exact"):
        assert name in done.output


def test_it_prints_the_snapshot_as_json(folder: Path) -> None:
    done = RUNNER.invoke(app, ["top", str(folder), "--json"])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.output)["flow"] == "virtual"


def test_an_address_with_a_wrong_or_no_token_is_refused(folder: Path, tmp_path: Path) -> None:
    url = (folder / "watch").read_text().strip()
    refused = RUNNER.invoke(app, ["top", url, "--json"])
    assert isinstance(refused.exception, SpillwayError)
    assert "refuses with 401: give --token FILE" in str(refused.exception)


def test_a_folder_without_a_flow_is_said(tmp_path: Path) -> None:
    refused = RUNNER.invoke(app, ["top", str(tmp_path)])
    assert "no flow that can be watched runs in" in str(refused.exception)


def test_a_flow_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "watch").write_text("http://127.0.0.1:1\n")
    refused = RUNNER.invoke(app, ["top", str(tmp_path)])
    assert "does not answer" in str(refused.exception)


@pytest.mark.parametrize(
    "place", ["http://a b", "http://127.0.0.1:99999", "http://[", "http://", "x" * 300, "\0", ""]
)
def test_what_is_no_place_is_refused_in_a_line(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = RUNNER.invoke(app, ["top", place, "--once"])
    assert isinstance(done.exception, SpillwayError), done.exception
    assert len(done.exception.problems) == 1


@pytest.mark.parametrize("held", [b"\xff\xfe", b"http://a b", b"", b"ftp://x", b"[red]"])
def test_a_damaged_address_is_refused_in_a_line(held: bytes, tmp_path: Path) -> None:
    (tmp_path / "watch").write_bytes(held)
    done = RUNNER.invoke(app, ["top", str(tmp_path), "--once"])
    assert isinstance(done.exception, SpillwayError), done.exception


def test_no_token_is_sent_where_a_file_of_another_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watch").write_text("http://127.0.0.1:1\n")
    token = tmp_path / "mine"
    token.write_text("me 0123456789abcdef\n")
    token.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:
        os.chown(tmp_path / "watch", 4242, -1)
    words = ["top", str(tmp_path), "--once", "--token", str(token)]
    done = RUNNER.invoke(app, words)
    assert "a token would be sent" in str(done.exception)
