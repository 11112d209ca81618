import os

import pytest

from spillway.errors import SpillwayError
from spillway.gate.options import NEVER_UNREAD, OPTIONS, GateOptions
from spillway.model import Target


def test_without_options_a_gate_has_the_documented_defaults() -> None:
    gate = GateOptions.parse({})
    assert (gate.target, gate.manager, gate.policy) == (
        Target(delay_s=2.0),
        "predictive",
        "uniform",
    )
    assert (gate.period_s, gate.poll_s, gate.quiet_s) == (1.0, 1.0, 2.0)
    assert (gate.first_batch, gate.max_batch, gate.min_keep, gate.seed) == (10_000, None, 0.0, 0)
    assert gate.parallelism == os.cpu_count()
    assert gate.selection is None
    assert gate.split is None
    assert gate.masks == ()


def test_what_follows_from_several_options() -> None:
    gate = GateOptions.parse(
        {"delay": "p95 3s", "manager": "dissp", "manager.gain": "0.5", "failondataloss": "true"}
    )
    assert gate.quiet_s == 3.0
    assert gate.law_parameters == {"gain": 0.5, "equation": 7}
    assert gate.fail_on_data_loss
    windows = {"shedder": "windows", "window": "10s", "heartbeat": "at"}
    assert GateOptions.parse(windows).min_keep == NEVER_UNREAD


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policy": "frsh"}, r"option 'policy' is 'frsh'.*did you mean 'fresh'"),
        ({"shedder": "kei"}, r"option 'shedder' is 'kei'.*did you mean 'key'"),
        ({"min_keep": "1.5"}, "option 'min_keep' is '1.5': it must be a number from 0 to 1"),
        (
            {"manager": "dissp", "manager.gain": "high"},
            "parameter 'gain' of load manager 'dissp' is 'high': it must be a number",
        ),
        ({"masks": "a:1000000", "weight": "true"}, "exclude 'weight'"),
        ({"split": "a:1:1", "policy": "fresh"}, "option 'split' excludes"),
        ({"shedder": "key", "key": "k", "policy": "fresh"}, "shedder 'key' excludes"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: dict[str, str], expected: str) -> None:
    with pytest.raises(SpillwayError, match=expected):
        GateOptions.parse(options)


def test_no_option_is_declared_twice() -> None:
    names = [option.name.lower() for option in OPTIONS]
    assert len(set(names)) == len(names)
