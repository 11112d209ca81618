"""Load managers by name."""

import pytest

from spillway.errors import SpillwayError
from spillway.load.laws import LAWS, checked, make


@pytest.mark.parametrize("name", LAWS)
def test_every_law_can_be_made_with_its_own_defaults_spelled_out(name: str) -> None:
    assert type(make(name, **checked(name, {}))) is LAWS[name]


def test_parameters_come_as_a_flow_file_or_an_option_writes_them() -> None:
    from_flow = checked("ctrl", {"headroom": 0.9, "poles": [0.6, 0.5]})
    assert from_flow == checked("ctrl", {"headroom": "0.9", "poles": "0.6, 0.5"})
    assert (from_flow["poles"], from_flow["outflow"]) == ((0.6, 0.5), "measured")


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("ctlr", {}, "did you mean 'ctrl'"),
        ("CTRL", {}, "known are aloma"),
        ("ctrl", {"headrom": 1.0}, "did you mean 'headroom'"),
        ("none", {"headroom": 1.0}, "it takes no options"),
        ("ctrl", {"headroom": -0.5}, "headroom.* is -0.5: it must be a number above 0"),
        ("aurora", {"headroom": "much"}, "it must be a number"),
        ("aurora", {"headroom": float("nan")}, "headroom.* is nan"),
        ("dissp", {"gain": 0.0}, "gain.* is 0.0"),
        ("dissp", {"equation": 5}, "from 6 to 7"),
        ("seamless", {"adjust_periods": 0}, "at least 1"),
        ("aloma", {"refresh_periods": 0}, "at least 1"),
        ("fixed", {"keep_fraction": 1.5}, "at most 1"),
        ("pid", {"integral": -1.0}, "at least 0"),
        ("pie", {"largest_step": 0.0}, "above 0"),
        ("predictive", {"headroom": 0.0}, "above 0"),
    ],
)
def test_bad_input_gets_one_clear_line(name: str, settings: dict[str, object], said: str) -> None:
    with pytest.raises(SpillwayError, match=said) as caught:
        make(name, **settings)
    assert "\n" not in str(caught.value)
