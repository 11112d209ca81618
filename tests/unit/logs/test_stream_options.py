"""Options that nobody reads are refused: a slip would silently mean the default."""

import pytest

from spillway.errors import SpillwayError
from spillway.gate.options import OPTIONS
from spillway.logs.catalog import MODULES
from spillway.logs.stream_options import own_options, require_valid


@pytest.mark.parametrize("source", MODULES)
def test_what_the_gate_and_the_log_read_is_known_whatever_its_case(source: str) -> None:
    given = {option.name: "" for option in OPTIONS} | {"manager.headroom": "0.8"}
    own_options({name.upper(): value for name, value in given.items()} | {"source": source})
    own_options({"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "h:1"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("min_kep", "did you mean 'min_keep'"),
        ("dely", "did you mean 'delay'"),
        ("startOffsets", "did you mean 'startingOffsets'"),
        ("subscribePatern", "did you mean 'subscribePattern'"),
        ("maxOffsetPerTrigger", "did you mean 'maxOffsetsPerTrigger'"),
        ("xyzzy", "leave it out"),
    ],
)
def test_a_slip_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(SpillwayError, match=hint) as raised:
        own_options({"source": "kafka", "topic": "t", name: "1"})
    assert f"option '{name.lower()}'" in str(raised.value)


def test_options_of_sparks_own_source_mean_the_same_and_name_the_log() -> None:
    sparks = {
        "kafka.bootstrap.servers": "h:1",
        "subscribe": "orders",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": "1000",
        "minPartitions": "8",
        "groupIdPrefix": "mine",
        "startingOffsets": "earliest",
    }
    assert own_options(sparks) == {
        "source": "kafka",
        "kafka.bootstrap.servers": "h:1",
        "topic": "orders",
        "headers": "true",
        "max_batch": "1000",
        "parallelism": "8",
        "group": "mine",
        "startingoffsets": "earliest",
    }
    with pytest.raises(SpillwayError, match="'subscribe' and 'topic' mean the same"):
        own_options({**sparks, "topic": "orders"})


def test_what_a_gate_does_otherwise_is_taken_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert own_options({"subscribe": "t", "fetchOffset.numRetries": "3"}) == {
        "source": "kafka",
        "topic": "t",
    }
    assert "option 'fetchoffset.numretries' has no effect" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rate", "kafka.bootstrap.servers"])
def test_an_option_of_another_log_is_not_known(name: str) -> None:
    source = "kafka" if name == "rate" else "files"
    expected = f"'{name}' is not known to the gate nor to log '{source}'"
    with pytest.raises(SpillwayError, match=expected):
        own_options({"source": source, name: "10"})


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("kafka", {"kafka.bootstrap.servers": "h:1"}, "option 'topic' is missing"),
        ("replay", {"path": "x", "speed": 0}, "option 'speed' is 0: it must be a number above 0"),
        ("synthetic", {"poll": 5}, "option 'poll' is '5'"),
        ("synthetic", {"pol": "5s"}, "did you mean 'poll'"),
    ],
)
def test_values_are_judged_without_opening_anything(
    source: str, options: dict[str, object], expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        require_valid(source, options)
    require_valid("synthetic", {"rate": 1000, "seed": 3, "dry_run": True})
