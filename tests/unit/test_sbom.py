"""The bill of materials and the page on licences say what is installed."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAKEN = ("MIT", "BSD", "Apache", "ISC", "PSF", "0BSD", "LGPL")  # beside Apache-2.0, as a dependency


def run(*words: str) -> str:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_page_lists_the_licence_of_everything_that_comes_along() -> None:
    assert (ROOT / "docs" / "licences.md").read_text().endswith(run("--licences"))


def test_every_component_has_a_version_and_a_licence_that_we_can_take() -> None:
    bill = json.loads(run())
    assert bill["bomFormat"] == "CycloneDX"
    names = {component["name"] for component in bill["components"]}
    assert {"pyspark", "numpy", "sqlglot", "confluent-kafka", "psycopg"} <= names
    for component in bill["components"]:
        [licence] = component["licenses"]
        assert component["version"]
        assert any(kind in licence["expression"] for kind in TAKEN), component
