"""A virtual flow that is watched over a real server."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

sys.path.append(str(Path(__file__).parent))

from virtual import TOKENS, VirtualWatch

from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer


@pytest.fixture
def watched(tmp_path: Path) -> VirtualWatch:
    made = VirtualWatch(tmp_path)
    made.advance(20.0)
    return made


@pytest.fixture
def server(watched: VirtualWatch) -> Iterator[WatchServer]:
    made = WatchServer(watched, bound(Address(host="127.0.0.1", port=0)), TOKENS)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(server: WatchServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60.0) as made:
        yield made
