"""A running flow, asked over HTTP: by its folder or its address. Standard library only."""

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from spillway.errors import SpillwayError, shown
from spillway.watch.tokens import load_tokens
from spillway.watch.views import Snapshot

_WAIT_S = 20.0  # a machine that is overloaded answers late
_snapshots = TypeAdapter(Snapshot)


@dataclass(frozen=True, kw_only=True)
class Running:
    """Where it answers, and the secret that is shown there."""

    url: str
    secret: str | None = None

    def state(self) -> Snapshot:
        try:
            return _snapshots.validate_json(self._get("api/state"))
        except ValidationError as error:
            raise SpillwayError(
                f"{self.url} does not answer as this release does: use the release of its flow"
            ) from error

    def decisions(self, limit: int) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = json.loads(self._get(f"api/decisions?limit={limit}"))
        except ValueError as error:
            raise SpillwayError(f"{self.url} does not answer with decisions") from error
        return found

    def _get(self, path: str) -> bytes:
        headers = {} if self.secret is None else {"Authorization": f"Bearer {self.secret}"}
        try:
            request = urllib.request.Request(f"{self.url}/{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            hint = ": give --token FILE" if error.code == 401 else ""
            raise SpillwayError(f"{self.url} refuses with {error.code}{hint}") from error
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise SpillwayError(f"{self.url} does not answer ({reason}): is it running?") from error


def running_at(place: str, token: Path | None) -> Running:
    """`place` is an address, or the folder of a flow that is watched."""
    if place.startswith(("http://", "https://")):
        return Running(url=place.rstrip("/"), secret=_secret(token))
    try:
        folder = _watched_in(Path(place))
        url, owner = (folder / "watch").read_text().strip(), (folder / "watch").stat().st_uid
        own = folder / "tokens"
        secret = _secret(token or (own if own.exists() else None))
    except (OSError, ValueError) as error:
        raise SpillwayError(
            f"no flow that can be watched runs in {shown(place)}: name the folder of"
            " `spillway run`, or its address (http://...)"
        ) from error
    if secret is not None and owner not in (0, os.geteuid()):
        raise SpillwayError(
            f"{folder / 'watch'} is another user's, and a token would be sent where it says: give"
            " the address (http://...) instead"
        )
    return Running(url=url, secret=secret)


def _watched_in(folder: Path) -> Path:
    """The folder itself, or the only one in it that is a running flow's."""
    inside = sorted(file.parent for file in folder.glob("*/watch"))
    if (folder / "watch").exists() or not inside:
        return folder
    if len(inside) > 1:
        raise SpillwayError(f"several flows run in {folder}: name {' or '.join(map(str, inside))}")
    return inside[0]


def _secret(path: Path | None) -> str | None:
    return None if path is None else load_tokens(path)[0].secret
