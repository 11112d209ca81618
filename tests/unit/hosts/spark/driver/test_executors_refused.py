"""What cannot have executors that come and go says so in one line."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkAttributeError

from spillway.api import scale
from spillway.errors import SpillwayError
from spillway.hosts.spark.driver.executors import live_cores


class Client:
    """A session of Spark Connect, as far as anybody here looks."""

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "x"}
        )


def session(master: str, **config: str) -> Any:
    conf = SimpleNamespace(get=lambda key, default: config.get(key.rpartition(".")[2], default))
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: conf))


def test_a_local_session_a_client_and_a_second_hand_are_refused() -> None:
    with pytest.raises(SpillwayError, match="scale needs a cluster"):
        scale(session("local[2,4]"), delay="2s", max=8)
    with pytest.raises(SpillwayError, match="Spark Connect"):
        scale(cast(Any, Client()), delay="2s", max=8)
    with pytest.raises(SpillwayError, match="both decide"):
        scale(session("yarn", enabled="true"), delay="2s", max=8)


def test_what_is_asked_for_is_checked_before_anything_starts() -> None:
    with pytest.raises(SpillwayError, match="max is 2: it must be at least min, 4"):
        scale(session("yarn"), delay="2s", min=4, max=2)
    with pytest.raises(SpillwayError, match="p98"):
        scale(session("yarn"), delay="p98 2s", max=2)


def test_a_local_master_has_the_cores_that_spark_says() -> None:
    context = cast(Any, SimpleNamespace(master="local[6,4]", defaultParallelism=2))
    assert live_cores(context) == 2
