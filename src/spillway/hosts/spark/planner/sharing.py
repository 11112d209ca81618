"""What a gate lets the other gates of its query know, and nobody else: its log's options.

They hold passwords, so they are in no file: who asks at a socket in a folder of this user's alone
is told, and when the process ends, nothing of it is left.
"""

import atexit
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_WAIT_S = 1.0
_MOST_BYTES = 1 << 20


class Sharing:
    """Answers with what `tell` gives, for as long as this process lives."""

    def __init__(self, tell: Callable[[], Mapping[str, str]]) -> None:
        self._tell = tell
        self._folder = Path(tempfile.mkdtemp(prefix="spillway-"))  # mode 0700
        self.path = str(self._folder / "gate")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen()
        atexit.register(self.close)
        threading.Thread(target=self._serve, name="spillway-gate", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(_WAIT_S)
                connection.sendall(json.dumps(dict(self._tell())).encode() + b"\n")


def told_at(path: str) -> dict[str, str]:
    """Raises OSError where nobody is there, ValueError where what comes is no table of texts."""
    folder = os.lstat(os.path.dirname(path))
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise PermissionError(f"{path} is open to other users, or another user's")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_WAIT_S)
        connection.connect(path)
        value: Any = json.loads(connection.makefile("rb").readline(_MOST_BYTES))
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError(f"{path} is no gate")
    return value
