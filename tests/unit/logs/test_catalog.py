import subprocess
import sys

import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log

HEAVY = ("confluent_kafka", "pandas", "pydantic", "scipy", "pyspark", "sqlglot", "typer")


@pytest.mark.parametrize("source", ["synthetic", "replay", "files"])
def test_making_a_log_imports_nothing_heavy(source: str) -> None:
    code = (
        "import sys; from spillway.logs.catalog import open_log;"
        f"open_log({{'source': '{source}', 'path': 'x'}});"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_options_for_java_clients_are_refused_with_the_right_name() -> None:
    options = {"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "localhost:1"}
    with pytest.raises(SpillwayError, match=r"use kafka\.sasl\.username"):
        open_log(options | {"kafka.sasl.jaas.config": "x"})
    with pytest.raises(SpillwayError, match="option 'topic' is missing"):
        open_log({"source": "kafka"})
    with pytest.raises(SpillwayError, match="give the schema"):
        open_log(options | {"decode": "json"})
