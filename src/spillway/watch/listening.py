"""Where the watch listens, and what that asks for."""

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import SpillwayError

PORT = 7759
NOWHERE = "off"
_LOOPBACK = "127.0.0.1"
_TRIED = 10  # ports, where none was asked for


@dataclass(frozen=True, kw_only=True)
class Address:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Tls:
    """PEM files."""

    certificate: Path
    key: Path


def parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SpillwayError(
            f"--listen is '{text}': it must be HOST:PORT, for example 127.0.0.1:{PORT}, or"
            f" {NOWHERE}; port 0 is any that is free"
        )
    return Address(host=host, port=int(port))


def bound(asked: Address | None) -> tuple[socket.socket, Address]:
    """A socket that listens. Where no address was asked for it is on loopback, on the first port
    from PORT on that is free."""
    if asked is not None:
        return _bind(asked)
    for port in (*range(PORT, PORT + _TRIED), 0):
        with suppress(SpillwayError):
            return _bind(Address(host=_LOOPBACK, port=port))
    raise SpillwayError(f"no port of {_LOOPBACK} can be listened on: --listen {NOWHERE} does not")


def _bind(address: Address) -> tuple[socket.socket, Address]:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((address.host, address.port), family=family, backlog=256)
    except OSError as error:
        raise SpillwayError(
            f"--listen is '{address}', where nothing can listen ({error.strerror}): give a host of"
            " this machine and a port that is free; port 0 is any"
        ) from error
    return made, Address(host=address.host, port=made.getsockname()[1])
