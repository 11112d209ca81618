"""Tokens, addresses and what `spillway run` says before Spark starts."""

import stat
import sys
from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.watch.listening import Address, bound, parse_address
from spillway.watch.serving import opened_door
from spillway.watch.tokens import Token, load_tokens, own_tokens, owner_of

SECRET = "0123456789abcdef"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_tokens_have_names_and_rights(tmp_path: Path) -> None:
    path = written(tmp_path / "t", f"# who\nada {SECRET}\n\ngrafana {SECRET}2 read\n")
    ada, grafana = load_tokens(path)
    assert (ada.name, ada.may_change, grafana.may_change) == ("ada", True, False)
    assert owner_of(SECRET, (ada, grafana)) is ada
    assert owner_of("", (ada, grafana)) is None
    assert SECRET not in repr(ada)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no token"),
        ("ada\n", "line 1"),
        (f"ada {SECRET} write\n", "line 1"),
        ("ada short\n", "at least 16"),
        (f"ada {SECRET}\nada {SECRET}x\n", "again"),
    ],
)
def test_a_wrong_file_of_tokens_is_one_line_without_secrets(
    tmp_path: Path, text: str, word: str
) -> None:
    with pytest.raises(SpillwayError, match=word) as refused:
        load_tokens(written(tmp_path / "t", text))
    assert SECRET not in str(refused.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="chmod 600"):
        load_tokens(written(tmp_path / "t", f"ada {SECRET}\n", mode=0o644))


def test_a_folder_gets_a_token_of_its_own_once(tmp_path: Path) -> None:
    [first] = own_tokens(tmp_path / "f" / "tokens")
    [again] = own_tokens(tmp_path / "f" / "tokens")
    assert first == again
    assert first.name == "operator"
    assert stat.S_IMODE((tmp_path / "f" / "tokens").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["8080", "localhost", ":80", "a:b", "a:70000", "[::1]", ""])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(SpillwayError, match="HOST:PORT"):
        parse_address(text)


def test_addresses_of_this_machine_alone_are_loopback() -> None:
    assert parse_address("127.0.0.1:80").is_loopback
    assert parse_address("[::1]:80").is_loopback
    assert parse_address("localhost:80").is_loopback
    assert not parse_address("0.0.0.0:80").is_loopback
    assert not parse_address("example.org:80").is_loopback
    assert str(parse_address("[::1]:80")) == "[::1]:80"


def test_a_port_that_is_taken_is_said_at_once() -> None:
    held, address = bound(Address(host="127.0.0.1", port=0))
    with held, pytest.raises(SpillwayError, match="nothing can listen"):
        bound(address)


def test_two_flows_on_one_machine_find_a_port_each() -> None:
    one, first = bound(None)
    other, second = bound(None)
    with one, other:
        assert first.is_loopback
        assert first.port != second.port


def test_off_listens_nowhere_and_leaves_no_token(tmp_path: Path) -> None:
    assert opened_door(tmp_path, "off", None) is None
    assert not list(tmp_path.iterdir())


def test_where_secrets_cannot_be_kept_a_run_that_nobody_wants_to_steer_goes_on(
    tmp_path: Path,
) -> None:
    written(tmp_path / "tokens", f"ada {SECRET}\n", mode=0o644)
    door = opened_door(tmp_path, None, None)
    assert door is not None
    with door.listening[0]:
        assert door.tokens == ()
    with pytest.raises(SpillwayError, match="give --keys"):
        opened_door(tmp_path, "127.0.0.1:0", None)


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    with pytest.raises(SpillwayError, match="NAME SECRET"):
        opened_door(tmp_path, "127.0.0.1:0", keys)
    written(keys / "tokens", f"ada {SECRET}\n")
    door = opened_door(tmp_path, "127.0.0.1:0", keys)
    assert door is not None
    door.listening[0].close()
    assert (door.tls, [token.name for token in door.tokens]) == (None, ["ada"])
    written(keys / "tls.crt", "nothing")
    with pytest.raises(SpillwayError, match="two PEM files"):
        opened_door(tmp_path, "127.0.0.1:0", keys)


def test_keys_that_are_no_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="no folder"):
        opened_door(tmp_path, "127.0.0.1:0", written(tmp_path / "file", "x"))


def test_without_the_packages_a_run_goes_on_and_an_address_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name.split(".")[0] == "uvicorn"]:
        monkeypatch.delitem(sys.modules, name)
    assert opened_door(tmp_path, None, None) is None
    with pytest.raises(SpillwayError, match=r"spillway-spark\[watch\]"):
        opened_door(tmp_path, "127.0.0.1:0", None)


def test_a_token_is_compared_whole() -> None:
    token = Token(name="ada", secret=SECRET)
    assert owner_of(SECRET[:-1], [token]) is None
    assert owner_of(SECRET + "x", [token]) is None
    assert owner_of("é" * 16, [token]) is None
