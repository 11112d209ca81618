"""Who may ask, and what a request may hold: decided before anything looks at it."""

import ipaddress
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spillway.watch.tokens import Token, owner_of

LARGEST_BODY = 64 * 1024
_LONGEST_SAID = 500  # characters: values that were sent come back in it
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RefusedError(Exception):
    """An answer with a status of 4xx and one line."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        line = "".join(c if c.isprintable() else " " for c in said)
        self.status, self.said = status, line[:_LONGEST_SAID]

    def response(self) -> Response:
        headers = {"WWW-Authenticate": 'Bearer realm="spillway"'} if self.status == 401 else {}
        return JSONResponse({"error": self.said}, self.status, headers)


@dataclass(frozen=True, kw_only=True)
class Guard:
    """`open_to_read`: on loopback anybody on the machine may look."""

    tokens: Sequence[Token]
    open_to_read: bool

    def require_reader(self, request: Request) -> None:
        if not self.open_to_read:
            self._token(request)

    def require_changer(self, request: Request) -> Token:
        token = self._token(request)
        if not token.may_change:
            raise RefusedError(403, f"the token '{token.name}' may look, and change nothing")
        return token

    def require_host(self, request: Request) -> None:
        """A page from elsewhere must not reach a loopback address under a name of its own."""
        if self.open_to_read and not _is_loopback(request.headers.get("host", "")):
            raise RefusedError(421, "this address answers to 127.0.0.1 and localhost only")

    def _token(self, request: Request) -> Token:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise RefusedError(401, "a token is needed: send Authorization: Bearer SECRET")
        token = owner_of(secret.strip(), self.tokens)
        if token is None:
            raise RefusedError(401, "the token is not known here")
        return token


async def json_body(request: Request) -> dict[str, Any]:
    """A JSON object of a bounded size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "the body must be JSON: send Content-Type: application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise RefusedError(413, f"the body is larger than {LARGEST_BODY} bytes")
    try:
        value = json.loads(bytes(body), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is not JSON") from None
    if not isinstance(value, dict) or not value:
        raise RefusedError(400, 'the body must be an object, such as {"gold.delay": "1s"}')
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_loopback(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.removeprefix("[").removesuffix("]")
    with suppress(ValueError):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost"
