"""Requirements with the hashes of their files."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_version_and_the_hash_of_its_file() -> None:
    spec = importlib.util.spec_from_file_location("hashes", ROOT / "scripts" / "hashes.py")
    assert spec is not None
    assert spec.loader is not None
    hashes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hashes)
    found = [
        {
            "metadata": {"name": name, "version": "1.2"},
            "download_info": {"archive_info": {"hashes": {"sha256": 64 * digit}}},
        }
        for name, digit in (("rich", "a"), ("NumPy", "b"))
    ]
    assert list(hashes.pinned({"install": found})) == [
        f"NumPy==1.2 --hash=sha256:{64 * 'b'}",
        f"rich==1.2 --hash=sha256:{64 * 'a'}",
    ]


def test_requirements_are_exact_versions() -> None:
    lines = (ROOT / "requirements.txt").read_text().split()
    assert all(line.count("==") == 1 for line in lines)
    assert len({line.lower().partition("==")[0] for line in lines}) == len(lines)
