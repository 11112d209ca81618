"""The notebook's cells, one after the other, in a process of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "attach.ipynb"
LOOK = """
assert last is not None and known
assert sum(m.shed_tuples for m in decided) > 0
figure.savefig(r"{picture}")
"""


def test_the_notebook_runs_from_the_first_cell_to_the_last(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    program = tmp_path / "notebook.py"
    program.write_text("\n\n".join([*code, LOOK.format(picture=tmp_path / "burst.png")]))
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert "of the tuples were dropped" in done.stdout
    assert (tmp_path / "burst.png").stat().st_size > 0
