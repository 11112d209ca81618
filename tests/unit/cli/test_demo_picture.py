import sys
from pathlib import Path

import pytest

from spillway.cli import demo


def test_without_matplotlib_the_demo_says_what_its_picture_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "spillway-spark[pictures]" in demo._save_picture([], tmp_path)
    assert not list(tmp_path.iterdir())
