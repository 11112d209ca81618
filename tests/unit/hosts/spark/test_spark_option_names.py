"""Options that nobody reads are refused: a slip would silently mean the default."""

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.spark.option_names import MEANINGS, require_known
from spillway.logs.catalog import MODULES


@pytest.mark.parametrize("source", MODULES)
def test_what_the_gate_and_the_log_read_is_known_whatever_its_case(source: str) -> None:
    given = dict.fromkeys(MEANINGS, "") | {"source": source, "manager.headroom": "0.8"}
    require_known({name.upper(): value for name, value in given.items()} | {"source": source})
    require_known({"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "h:1"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("min_kep", "did you mean 'min_keep'"),
        ("dely", "did you mean 'delay'"),
        ("subscribe", "Spark's name for 'topic'"),
        ("maxOffsetsPerTrigger", "Spark's name for 'max_batch'"),
        ("xyzzy", "leave it out"),
    ],
)
def test_a_slip_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(SpillwayError, match=hint) as raised:
        require_known({"source": "kafka", "topic": "t", name: "1"})
    assert f"option '{name.lower()}'" in str(raised.value)


def test_an_option_of_another_log_is_not_known() -> None:
    with pytest.raises(SpillwayError, match="'rate' is not known to the gate nor to log 'kafka'"):
        require_known({"source": "kafka", "rate": "10"})
