"""Two thousand inputs that are nearly right; `make fuzz` tries fifty thousand."""

import random

import pytest

from fuzz.mutations import json_of
from fuzz.run import _one, violations
from fuzz.targets import Fuzzed
from spillway.errors import SpillwayError


def test_nearly_right_inputs_are_taken_or_refused_in_the_house_form() -> None:
    found = violations(2000, seed=20)
    assert not found, "\n".join(f"{v.target} {v.number}: {v.what}\n  {v.shown}" for v in found)


def refuses_badly() -> None:
    raise KeyError("a trace")


def refuses_in_two_lines() -> None:
    error = SpillwayError("well")
    error.args = ()
    raise error


@pytest.mark.parametrize(
    ("run", "expected"), [(refuses_badly, "KeyError"), (refuses_in_two_lines, "not a line")]
)
def test_what_is_no_refusal_is_a_violation(run: object, expected: str) -> None:
    target = Fuzzed(name="t", share=1, make=lambda rng, folder: ("given", run))  # type: ignore[arg-type, return-value]
    violation = _one(target, 1, 1)
    assert violation is not None
    assert expected in violation.what


def test_the_same_seed_makes_the_same_input() -> None:
    made = [json_of(random.Random("7/3"), {"a": [1, 2, {"b": "c"}]}) for _ in range(2)]
    assert repr(made[0]) == repr(made[1])
