"""Files behind URIs, as far as Spillway needs them: whole objects by name, and lists of folders.

Plain paths and `file:` are paths of this machine; `s3:`, `s3a:`, `gs:`, `abfs:`, `abfss:` and
`hdfs:` go through pyarrow, which every planner and worker has, and of these only hdfs needs a JVM.
Credentials and endpoints are the conventional environment variables, such as AWS_ENDPOINT_URL.
"""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from spillway.errors import SpillwayError, shown
from spillway.uris import is_remote, local

_DIRECTORY = 3  # among pyarrow's types of files; 0 is none
_ATTEMPTS = 3  # of the client's own, within seconds: who needs more tries again later
_WAIT_S = 10.0


def place_at(text: str) -> "Place":
    return Remote.of(text) if is_remote(text) else Path(local(text))


@dataclass(frozen=True, slots=True)
class Modified:
    st_mtime: float
    st_size: int


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder of a storage; reads like a `pathlib.Path`."""

    uri: str

    @classmethod
    def of(cls, text: str) -> "Remote":
        scheme, _, rest = text.partition(":")
        return cls(f"{scheme.lower()}://{rest.strip('/')}")

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.uri}/{name}")

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def exists(self) -> bool:
        return int(self._info().type) != 0

    def is_dir(self) -> bool:
        return int(self._info().type) == _DIRECTORY

    def iterdir(self) -> Iterator["Remote"]:
        from pyarrow.fs import FileSelector

        system, path = _opened(self.uri)
        for found in system.get_file_info(FileSelector(path, allow_not_found=True)):
            yield self / found.base_name

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Whole or not at all: an object appears when it has been written."""
        system, path = _opened(self.uri)
        with system.open_output_stream(path) as file:
            file.write(data)

    def open(self, mode: str = "rb") -> BinaryIO:
        system, path = _opened(self.uri)
        return io.BytesIO(system.open_input_file(path).read())

    def stat(self) -> Modified:
        info = self._info()
        if int(info.type) == 0:
            raise FileNotFoundError(self.uri)
        return Modified(st_mtime=(info.mtime_ns or 0) / 1e9, st_size=info.size or 0)

    def _info(self) -> Any:
        system, path = _opened(self.uri)
        return system.get_file_info(path)


Place = Path | Remote


def _opened(uri: str) -> tuple[Any, str]:
    """The storage, and the path in it."""
    scheme, _, path = uri.partition("://")
    try:
        if scheme in ("s3", "s3a"):
            return _s3(), path
        from pyarrow.fs import FileSystem

        found: tuple[Any, str] = FileSystem.from_uri(uri)
        return found
    except (OSError, ValueError, ImportError) as error:
        said = " ".join(str(error).split())[:200]
        raise SpillwayError(f"'{shown(uri)}' cannot be opened: {said}") from None


@cache
def _s3() -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, _, host = address.rpartition("://")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return S3FileSystem(
        region=region or ("us-east-1" if host else None),
        endpoint_override=host or None,
        scheme=scheme or "https",
        connect_timeout=_WAIT_S,
        request_timeout=_WAIT_S,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
