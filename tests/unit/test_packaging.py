"""Two wheels: the product brings what it imports and nothing else, and runs without the lab."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PRODUCT = ("spillway", "pyspark_spillway")
OFFERS_THE_LAB = SOURCE / "spillway" / "cli" / "lab.py"

NAMED_OTHERWISE = {"yaml": "pyyaml"}  # what is imported, and what is installed for it
COMES_WITH = {"py4j": "pyspark", "pydantic_core": "pydantic"}
FOR_PYSPARK = {"pandas"}  # imported by PySpark, not by us


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (SOURCE / package).rglob("*.py"))


def imported_by(*packages: str) -> set[str]:
    """The names under which what they import is installed."""
    found: set[str] = set()
    for path in modules(*packages):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    foreign = found - set(sys.stdlib_module_names) - {*PRODUCT, "spillway_lab"}
    names = (COMES_WITH.get(name, NAMED_OTHERWISE.get(name, name)) for name in foreign)
    return {name.replace("_", "-") for name in names}


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~! ;]", one)[0].lower() for one in requirements}


def extras_of(declared: dict[str, Any]) -> set[str]:
    return set().union(*map(names_of, declared["optional-dependencies"].values()))


@pytest.mark.parametrize("path", modules(*PRODUCT), ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_product_does_not_know_the_lab(path: Path) -> None:
    if path != OFFERS_THE_LAB:
        assert "spillway_lab" not in path.read_text()


def test_the_product_declares_what_it_imports() -> None:
    declared = project(ROOT)
    always, sometimes = names_of(declared["dependencies"]), extras_of(declared)
    assert not always & sometimes
    assert always | sometimes == imported_by(*PRODUCT) | FOR_PYSPARK


def test_the_lab_declares_the_product_and_what_it_imports_beyond() -> None:
    product, lab = project(ROOT), project(ROOT / "lab")
    assert lab["version"] == product["version"]
    assert f"spillway-spark[cluster,pictures]=={product['version']}" in lab["dependencies"]
    brought = names_of(product["dependencies"]) | extras_of(product)
    own = names_of(lab["dependencies"]) - {"spillway-spark"}
    assert own == imported_by("spillway_lab") - brought


def build(folder: Path, kind: str, out: Path) -> list[str]:
    """The names of the files in a wheel."""
    program = f"import hatchling.build as h, sys; print(h.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-B", "-c", program, str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return zipfile.ZipFile(out / done.stdout.split()[-1]).namelist()


@pytest.mark.parametrize(
    ("folder", "packages"), [(ROOT, PRODUCT), (ROOT / "lab", ("spillway_lab",))], ids=["", "lab"]
)
def test_a_wheel_holds_its_packages_and_no_others(
    folder: Path, packages: tuple[str, ...], tmp_path: Path
) -> None:
    every = build(folder, "wheel", tmp_path)
    found = {name for name in every if name.endswith(".py")}
    assert found == {path.relative_to(SOURCE).as_posix() for path in modules(*packages)}
    [licence] = [name for name in every if name.endswith("LICENSE")]
    [wheel] = tmp_path.glob("*.whl")
    assert zipfile.ZipFile(wheel).read(licence) == (ROOT / "LICENSE").read_bytes()


def test_every_dependency_has_an_upper_bound() -> None:
    declared = project(ROOT)
    extras = declared["optional-dependencies"].values()
    every = [*declared["dependencies"], *(one for extra in extras for one in extra)]
    assert not [one for one in every if "<" not in one]


def test_the_changelog_is_of_the_version_that_is_built() -> None:
    version = project(ROOT)["version"].partition(".dev")[0]
    heading = next(
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if "##" in line
    )
    assert heading.startswith(f"## {version}")


def test_the_version_is_told() -> None:
    done = without("nothing_at_all", "--version")
    assert re.fullmatch(r"spillway \S+\n", done.stdout)


def test_the_wheel_brings_the_page_that_it_serves(tmp_path: Path) -> None:
    page = SOURCE / "spillway" / "watch" / "page"
    files = {file.relative_to(SOURCE).as_posix() for file in page.iterdir()}
    assert len(files) > 5
    assert files <= set(build(ROOT, "wheel", tmp_path))


@pytest.mark.parametrize("folder", [ROOT, ROOT / "lab"], ids=["", "lab"])
def test_an_editable_install_copies_nothing_that_could_hide_the_source(
    folder: Path, tmp_path: Path
) -> None:
    assert not [name for name in build(folder, "editable", tmp_path) if name.endswith(".py")]


def without(package: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`spillway` with these words, where the package is not installed."""
    program = f"import sys; sys.modules['{package}'] = None; from spillway.cli.app import main"
    command = [sys.executable, "-c", f"{program}; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("bench", "x"), ("reproduce", "--list"), ("simulate", "--help")])
def test_without_the_lab_its_commands_say_how_to_get_it(words: tuple[str, ...]) -> None:
    done = without("spillway_lab", *words)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert f"'spillway {words[0]}' belongs to the lab" in line
    assert "pip install spillway-lab" in line


@pytest.mark.parametrize("package", ["spillway_lab", "matplotlib", "scipy", "starlette", "uvicorn"])
def test_the_product_starts_without_what_only_the_lab_and_pictures_need(package: str) -> None:
    assert without(package, "--help").returncode == 0
