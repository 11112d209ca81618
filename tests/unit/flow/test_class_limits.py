"""What a class says of its queries' gates."""

from typing import Any

import pytest
from pydantic import ValidationError

from spillway.estimates.flow import gate_options
from spillway.flow.flow import Flow


def flow(limit: str, **options: object) -> Flow:
    given: dict[str, Any] = {
        "streams": {"s": {"source": "synthetic", "options": {"rate": 1000, **options}}},
        "classes": {"gold": {"delay": "2s", "max_shed": limit}},
        "queries": {"q": {"class": "gold", "sink": {"type": "noop"}, "sql": "SELECT * FROM s"}},
    }
    return Flow.model_validate(given)


def test_a_limit_of_what_may_go_reaches_the_gates() -> None:
    assert gate_options(flow("20% per 10m"), "q", "s")["max_shed"] == "20% per 10m"


def test_what_a_stream_says_goes_before_it() -> None:
    own = flow("20% per 10m", max_shed="1% per 1h")
    assert gate_options(own, "q", "s")["max_shed"] == "1% per 1h"


def test_anything_else_is_refused_with_an_example() -> None:
    with pytest.raises(ValidationError, match="for example '20% per 10m'"):
        flow("a fifth")
