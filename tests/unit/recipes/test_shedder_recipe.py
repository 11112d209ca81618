"""docs/recipes/shedder.md, followed to the letter."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "docs" / "recipes" / "shedder.md"
CONTRACT = ROOT / "tests" / "contract" / "test_shedders.py"
REGISTERED = """
from types import MappingProxyType
from spillway.gate.shedders import catalog
from spread import Spread
catalog.SHEDDERS = MappingProxyType({**catalog.SHEDDERS, Spread.name: Spread})
"""


def test_the_contract_suite_takes_up_the_shedder_of_the_recipe(tmp_path: Path) -> None:
    """In a process of its own, where the registry has one line more before anything reads it."""
    [code] = re.findall(r"```python\n(.*?)```", RECIPE.read_text(), re.DOTALL)
    (tmp_path / "spread.py").write_text(code)
    (tmp_path / "registered.py").write_text(REGISTERED)
    options = ["-q", "-p", "no:cacheprovider", "-p", "registered", "-k", "spread"]
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pytest; "
    command = f"sys.exit(pytest.main({[*options, str(CONTRACT)]!r}))"
    done = subprocess.run(
        [sys.executable, "-c", path + command], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 15


def test_the_recipe_names_files_that_there_are() -> None:
    for name in re.findall(r"[ `]((?:gate|flow|tests)/[\w/]+\.py)", RECIPE.read_text()):
        assert (ROOT / name).exists() or (ROOT / "src" / "spillway" / name).exists(), name
