"""The import rule: pure modules know nothing of plants, and nothing knows of the command line."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "spillway"
LAYERS = (
    {"model", "ports", "clock", "errors"},
    {"gate", "load", "classes", "cluster", "loop", "workloads"},
    {"logs", "plants", "queries", "journal", "experiments", "benchmarks"},
    {"cli", "web"},
)
PURE_MAY_NOT_IMPORT = {"pyspark", "confluent_kafka", "socket", "subprocess", "threading", "time"}
MODULES = sorted(SOURCE.rglob("*.py"))


def layer_of(part: str) -> int:
    return next(i for i, parts in enumerate(LAYERS) if part in parts)


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_from_the_edge_to_the_core(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    for name in imports_of(path):
        if name.startswith("spillway."):
            other = name.split(".")[1]
            assert layer_of(other) <= layer_of(part), f"{part} may not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_pure_modules_do_no_io_and_know_no_time(path: Path) -> None:
    part = part_of(path)
    if part in ("__init__", "clock") or layer_of(part) > 1:
        return
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert not roots & PURE_MAY_NOT_IMPORT


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=str)
def test_package_files_stay_empty_so_that_workers_import_little(path: Path) -> None:
    assert path.read_text() == ""
