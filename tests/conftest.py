"""Fixtures that several suites share."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "kafka"))


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real broker on loopback; tests that ask for it are skipped where there can be none."""
    from broker import Broker, UnavailableError

    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    yield broker
    broker.stop()
