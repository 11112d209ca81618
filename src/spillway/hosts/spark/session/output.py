"""What Spark and its Python processes print, in a file: the terminal is for the flow.

A JVM inherits the file when it is launched, and copies into it what planners and workers print.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from spillway.private import make_private, open_private
from spillway.redaction import is_secret, redacted

OURS = "spillway: "  # begins the lines that planners and workers print for the user
LARGEST_BYTES = 64 << 20  # then the file begins anew; the one before it stays
_AT_ONCE = 1 << 20


class SparkOutput:
    """One run's file. That of the run before stays beside it, with `.1` at its end."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        self.path = path
        self._largest_bytes = largest_bytes
        self._read_bytes = 0
        self._said: set[str] = set()

    def launch(self, settings: Mapping[str, str]) -> None:
        """Launch the JVM of the next session, unless this process has one, which stays as it is."""
        make_private(self.path.parent)
        if self.path.exists():
            os.replace(self.path, self._before)
        with self._appending() as file:
            if SparkContext._gateway is not None:
                return
            # What is given here is on the command line of the JVM, for everybody to see.
            shown = {name: value for name, value in settings.items() if not is_secret(name)}
            streams = {"stdout": file, "stderr": file}
            public = SparkConf().setAll(list(shown.items()))
            gateway = launch_gateway(public, streams)  # type: ignore[no-untyped-call]
        SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=gateway)

    def keep(self, text: str) -> None:
        """Add what this process has to say: a stack trace is for the file."""
        with self._appending() as file:
            file.write(redacted(text).encode())

    def _appending(self) -> BinaryIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.fdopen(open_private(self.path, flags), "ab")

    def news(self) -> list[str]:
        """The lines for the user that have come since this was asked last, each once in a run."""
        with self.path.open("rb") as file:
            file.seek(self._read_bytes)
            text = file.read(_AT_ONCE)
        whole = text[: text.rfind(b"\n") + 1]
        if not whole and len(text) == _AT_ONCE:
            whole = text
        self._read_bytes += len(whole)
        lines = whole.decode(errors="replace").splitlines()
        found = [line for line in dict.fromkeys(lines) if line.startswith(OURS)]
        new = [line for line in found if line not in self._said]
        self._said.update(new)
        self._bound()
        return new

    def _bound(self) -> None:
        """All who write append to it, so it may be cut while they do."""
        if self._read_bytes > self._largest_bytes:
            shutil.copyfile(self.path, self._before)
            os.truncate(self.path, 0)
            self._read_bytes = 0

    @property
    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")
