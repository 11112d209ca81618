"""Whatever runs is watched: from before Spark starts until its end."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.errors import SpillwayError
from spillway.watch.listening import NOWHERE, Address, Tls, bound, parse_address
from spillway.watch.tokens import Token, load_tokens, own_tokens

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application
    from spillway.watch.watched import Watched

INSTALL = "pip install 'spillway-spark[watch]'"
KEYS = "it holds `tokens`, lines of NAME SECRET [read], and for TLS tls.crt and tls.key"
_NEEDED = ("starlette", "uvicorn", "prometheus_client")


@dataclass(frozen=True, kw_only=True)
class Door:
    """An address that is held, and who may come in."""

    listening: tuple[socket.socket, Address]
    tokens: tuple[Token, ...]
    tls: Tls | None = None


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in _NEEDED)


def opened_door(root: Path | None, listen: str | None, keys: Path | None) -> Door | None:
    """Before Spark starts: what is wrong is said at once. None: nobody watches.

    Without `keys` the tokens are those in `root`; without that either nobody can change anything.
    """
    if listen == NOWHERE:
        return None
    if not is_installed():
        if listen is None and keys is None:
            return None
        raise SpillwayError(f"--listen needs packages that are not installed: {INSTALL}")
    asked = None if listen is None else parse_address(listen)
    if keys is None and root is None:
        if asked is not None and not asked.is_loopback:
            raise SpillwayError(f"--listen is '{listen}', which takes --keys FOLDER: {KEYS}")
        return Door(listening=bound(asked), tokens=())
    if keys is None:
        assert root is not None
        return Door(listening=bound(asked), tokens=_own(root, asked is None), tls=None)
    if not keys.is_dir():
        raise SpillwayError(f"--keys is '{keys}', which is no folder: {KEYS}")
    return Door(listening=bound(asked), tokens=load_tokens(keys / "tokens"), tls=_tls_of(keys))


def _own(root: Path, unasked: bool) -> tuple[Token, ...]:
    """Where secrets cannot be kept and nobody asked for it, nobody can change anything."""
    try:
        return own_tokens(root / "tokens")
    except (SpillwayError, OSError) as error:
        if unasked:
            return ()
        raise SpillwayError(f"no tokens can be kept in {root} ({error}): give --keys") from error


def served(application: "Application", name: str, door: Door) -> AbstractContextManager[str]:
    from spillway.watch.spark import SparkWatch

    return shown(SparkWatch(application, name), door, application.folder.watch)


@contextmanager
def shown(watched: "Watched", door: Door, address: Path) -> Iterator[str]:
    """Its address; also in the file `address`, where other commands find it."""
    from spillway.watch.server import WatchServer

    server = WatchServer(watched, door.listening, door.tokens, door.tls)
    server.start()
    address.parent.mkdir(parents=True, exist_ok=True)
    address.write_text(f"{server.url}\n")
    try:
        yield server.url
    finally:
        with suppress(OSError):  # of another one, that began later
            if address.read_text().strip() == server.url:
                address.unlink()
        server.stop()


def _tls_of(keys: Path) -> Tls | None:
    """Neither file: no TLS."""
    import ssl

    certificate, key = keys / "tls.crt", keys / "tls.key"
    if not certificate.exists() and not key.exists():
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SpillwayError(
            f"{keys} holds no certificate with its key ({error}): tls.crt and tls.key are two PEM"
            " files"
        ) from error
    return Tls(certificate=certificate, key=key)
