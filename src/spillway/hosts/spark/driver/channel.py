"""The driver's end of the private channel to the gates' planner processes.

One JSON line each way: a query's gate reports where it stands and is told what it may do. The
socket lives in a folder that only its owner may enter.
"""

import contextlib
import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError, shown
from spillway.model import Order, Report

_LONGEST_LINE_BYTES = 1 << 24

Answer = Callable[[Report], Order]
Leave = Callable[[str], None]
Change = Callable[[str, str | None], None]  # ("gold.delay", "1s"); None: as in the flow file
Version = Mapping[str, Any]  # of a query: what is to change
ChangeQuery = Callable[[str, Version | None, bool], list[str]]  # None: back; only to be checked


def _refuse(key: str, value: str | None) -> None:
    raise SpillwayError(f"{key} cannot be changed here")


def refuse_query(name: str, version: Version | None, only_check: bool) -> list[str]:
    raise SpillwayError(f"query '{name}' cannot be changed while it runs here: use `spillway run`")


class ChannelServer:
    """Listens for gates; `answer` is called in one thread per gate, `leave` when one is gone.

    Changes at run time come in by the same door: `change` raises SpillwayError to refuse one.
    """

    def __init__(
        self,
        answer: Answer,
        leave: Leave,
        change: Change = _refuse,
        change_query: ChangeQuery = refuse_query,
    ) -> None:
        self._answer, self._leave = answer, leave
        self._change, self._change_query = change, change_query
        self._folder = Path(tempfile.mkdtemp(prefix="spillway-"))  # mode 0700
        self.path = self._folder / "control"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self._socket.listen()
        self._connections: set[socket.socket] = set()
        self._heard_by: dict[str, socket.socket] = {}  # query -> where it reported last
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="spillway-channel", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        query: str | None = None
        try:
            with connection, connection.makefile("rwb") as stream:
                while line := stream.readline(_LONGEST_LINE_BYTES):
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        break
                    if "set" in value:
                        stream.write(_line(self._changed(value["set"], value["to"])))
                    elif "change" in value:
                        stream.write(_line(self._changed_query(value)))
                    else:
                        report = from_json(Report, value)
                        query = report.query
                        with self._lock:
                            self._heard_by[query] = connection
                        stream.write(_line(to_json(Order, self._answer(report))))
                    stream.flush()
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SpillwayError):
            pass  # not a gate, or one that went away in the middle of a line: as good as left
        finally:
            self._connections.discard(connection)
            if query is not None:
                self._gone(query, connection)

    def _gone(self, query: str, connection: socket.socket) -> None:
        """A query that was cut off may be back by another connection: then it has not left."""
        with self._lock:
            if self._heard_by.get(query) is connection:
                del self._heard_by[query]
                self._leave(query)

    def _changed(self, key: Any, to: Any) -> dict[str, Any]:
        if not isinstance(key, str) or not isinstance(to, str | None):
            return {"error": "a change has a text as key, and a text or nothing as value"}
        try:
            self._change(key, to)
        except SpillwayError as error:
            return {"error": str(error)}
        return {"done": True}

    def _changed_query(self, value: Mapping[str, Any]) -> dict[str, Any]:
        name, version = value["change"], value["version"]
        if not isinstance(name, str) or not isinstance(version, dict | None):
            return {"error": "a change has a query's name, and what is to change or nothing"}
        try:
            return {"would": self._change_query(name, version, bool(value["only_check"]))}
        except SpillwayError as error:
            return {"error": str(error)}


def request_change(path: str, key: str, to: str | None) -> None:
    """Ask a running flow to change a setting; raises SpillwayError when it refuses or is gone."""
    _request(path, {"set": key, "to": to})


def request_query_change(
    path: str, name: str, version: Version | None, *, only_check: bool
) -> list[str]:
    """Ask a running flow to change a query; what will happen then."""
    asked = {"change": name, "version": version, "only_check": only_check}
    said = _request(path, asked).get("would", [])
    return [str(line) for line in said]


def _request(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5.0)
            connection.connect(path)
            connection.sendall(_line(asked))
            answer = json.loads(connection.makefile("rb").readline())
    except (OSError, ValueError, RecursionError) as error:
        raise SpillwayError(f"the flow does not answer at {shown(path)}: is it running?") from error
    if not isinstance(answer, dict) or "error" in answer:
        raise SpillwayError(shown(answer["error"] if isinstance(answer, dict) else answer, 1000))
    return answer


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
