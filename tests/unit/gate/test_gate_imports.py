import subprocess
import sys

import pytest

HEAVY = ("pydantic", "scipy", "typer", "sqlglot", "rich", "matplotlib", "pandas", "yaml")


@pytest.mark.parametrize("module", ["pyspark_spillway", "spillway.hosts.spark.source"])
def test_a_worker_imports_nothing_heavy(module: str) -> None:
    """In a process of its own: workers import this module for every query."""
    program = f"import sys, {module}; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = {name.split(".")[0] for name in found.stdout.split()}
    assert not imported & set(HEAVY)
    assert "spillway.hosts.spark.planner.planner" not in found.stdout.split()
