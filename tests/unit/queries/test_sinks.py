import pytest

from spillway.errors import SpillwayError
from spillway.queries.flow import Flow
from spillway.queries.sinks import require_ready


def flow_with(sink: dict[str, object]) -> Flow:
    return Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic"}},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": {"sql": "SELECT * FROM ticks", "sink": sink}},
        }
    )


def test_a_function_that_is_there_is_ready() -> None:
    require_ready(flow_with({"type": "python", "call": "json:dumps"}))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("no_such_module:f", "module 'no_such_module' cannot be imported"),
        ("json:no_such_function", "'json' has no function 'no_such_function'"),
    ],
)
def test_a_function_that_is_not_there_is_named_before_spark_starts(
    call: str, expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        require_ready(flow_with({"type": "python", "call": call}))
