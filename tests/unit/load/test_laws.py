"""Load managers by name."""

import pytest

from spillway.errors import SpillwayError
from spillway.load.laws import LAWS, make, settings_of


@pytest.mark.parametrize("name", LAWS)
def test_every_law_can_be_made_with_its_own_defaults_spelled_out(name: str) -> None:
    assert type(make(name, **settings_of(name))) is LAWS[name]


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("ctlr", {}, "did you mean 'ctrl'"),
        ("CTRL", {}, "known are aloma"),
        ("ctrl", {"headrom": 1.0}, "did you mean 'headroom'"),
        ("none", {"headroom": 1.0}, "has no settings"),
        ("ctrl", {"headroom": -0.5}, "headroom is -0.5"),
        ("aurora", {"headroom": "much"}, "not a number"),
        ("aurora", {"headroom": float("nan")}, "headroom is nan"),
        ("dissp", {"gain": 0.0}, "gain is 0.0"),
        ("dissp", {"equation": 5}, "6 or 7"),
        ("seamless", {"adjust_periods": 0}, "1 or more"),
        ("aloma", {"refresh_periods": 0}, "1 or more"),
        ("fixed", {"keep_fraction": 1.5}, "at most 1"),
        ("pid", {"integral": -1.0}, "0 or more"),
        ("pie", {"largest_step": 0.0}, "above 0"),
        ("predictive", {"headroom": 0.0}, "above 0"),
    ],
)
def test_bad_input_gets_one_clear_line(name: str, settings: dict[str, object], said: str) -> None:
    with pytest.raises(SpillwayError, match=said) as caught:
        make(name, **settings)
    assert "\n" not in str(caught.value)
