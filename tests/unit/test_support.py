"""The page of what is supported says what the tests run, and what pip accepts."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "support.md").read_text()
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def row(name: str) -> list[str]:
    """run by the tests, expected to work, refused."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_pyspark_is_the_one_that_is_installed_for_tests() -> None:
    pinned = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text()))
    run, expected, refused = row("PySpark")
    assert run == pinned["pyspark"]
    [asked] = [one for one in DECLARED["dependencies"] if one.startswith("pyspark")]
    assert asked == f"pyspark>={expected},<{refused.rpartition(', ')[2]}"
    assert refused.startswith(f"below {expected}")


def test_python_and_java_are_the_least_that_are_asked_for() -> None:
    run, _, refused = row("Python")
    assert DECLARED["requires-python"] == f">={run}"
    assert refused == f"below {run}"
    run, _, refused = row("Java")
    assert refused == f"below {run}"
    assert f'"${{major:-0}}" -ge {run}' in (ROOT / "scripts" / "prerequisites").read_text()


def test_ci_runs_what_the_page_says_it_runs() -> None:
    commands = re.findall(r"make [\w-]+", (ROOT / ".ci" / "run").read_text())
    assert all(f"`{command}`" in PAGE for command in commands)
