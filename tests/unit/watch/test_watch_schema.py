"""Whatever is asked of the API, its answers keep to the schema that it serves."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from virtual import SECRET

from spillway.watch.openapi import document
from spillway.watch.server import WatchServer

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


# Events never end: test_watch_api.py listens to them.
ASKED = [
    (method, path)
    for path, methods in document()["paths"].items()
    for method in methods
    if path != "/api/events"
]


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_whatever_is_asked_the_answer_is_one_that_is_described(
    server: WatchServer, method: str, path: str
) -> None:
    served = schemathesis.openapi.from_url(f"{server.url}/openapi.json", timeout=60.0)

    @settings(
        max_examples=20, derandomize=True, deadline=None, suppress_health_check=[*HealthCheck]
    )
    @given(case=served[path][method].as_strategy())
    def asked(case: Any) -> None:
        for token in (None, "of-nobody-who-is-known-here", SECRET):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            case.call_and_validate(headers=headers, checks=CHECKS, timeout=60.0)

    asked()
