"""Requirements with the hashes of their files."""

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def hashes() -> Any:
    spec = importlib.util.spec_from_file_location("hashes", ROOT / "scripts" / "hashes.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_requirement_has_a_version_and_the_hash_of_its_file() -> None:
    found = [
        {
            "metadata": {"name": name, "version": "1.2"},
            "download_info": {"archive_info": {"hashes": {"sha256": 64 * digit}}},
        }
        for name, digit in (("rich", "a"), ("NumPy", "b"))
    ]
    assert list(hashes().pinned({"install": found})) == [
        f"NumPy==1.2 --hash=sha256:{64 * 'b'}",
        f"rich==1.2 --hash=sha256:{64 * 'a'}",
    ]


def test_requirements_are_exact_versions() -> None:
    lines = (ROOT / "requirements.txt").read_text().split()
    assert all(line.count("==") == 1 for line in lines)
    assert len({line.lower().partition("==")[0] for line in lines}) == len(lines)


def test_make_installs_from_requirements_with_hashes_where_it_is_told_so(tmp_path: Path) -> None:
    hashed = tmp_path / "requirements.txt"
    hashed.write_text(f"rich==1.2 --hash=sha256:{64 * 'a'}\n")
    words = [
        "make",
        "-n",
        f"VENV={tmp_path}/venv",
        f"REQUIREMENTS={hashed}",
        f"{tmp_path}/venv/ready",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    [line] = [line for line in done.stdout.splitlines() if " -r " in line]
    assert line.endswith(f"-r {hashed}")
    plain = subprocess.run(
        [word for word in words if "REQUIREMENTS" not in word],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-r requirements.txt" in plain.stdout


def test_pip_takes_no_file_of_another_hash(tmp_path: Path) -> None:
    """What `make hashes` writes is what pip checks: here against a wheel of our own."""
    program = "import hatchling.build as h, sys; print(h.build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wheel = tmp_path / built.stdout.split()[-1]
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    name, version = wheel.name.split("-")[:2]
    for found, takes in ((right, True), ("0" * 64, False)):
        item = {
            "metadata": {"name": name, "version": version},
            "download_info": {"archive_info": {"hashes": {"sha256": found}}},
        }
        asked = tmp_path / "asked.txt"
        asked.write_text("\n".join(hashes().pinned({"install": [item]})) + "\n")
        words = ["--no-index", "--find-links", str(tmp_path), "--no-deps", "--dry-run"]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                *words,
                "--ignore-installed",
                "-r",
                str(asked),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == takes, done.stderr
