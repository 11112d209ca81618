"""The import rule: which room may touch which, no cycles, nothing pure that does I/O."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "spillway"
CORE = {
    *("model", "handover", "ports", "clock", "coding", "errors", "options", "report"),
    *("redaction", "uris"),
}
PURE = {"gate", "load", "classes", "cluster", "loop", "workloads"}
LAYERS = (
    CORE,
    PURE,
    {
        *(
            "private",
            "lines",
            "storage",
            "logs",
            "sinks",
            "hosts",
            "flow",
            "templates",
            "estimates",
            "costs",
        ),
        *("journal", "check"),
    },
    {"watch"},
    {"api", "cli", "pictures", "testing"},
)
PURE_MAY_NOT_IMPORT = {"pyspark", "confluent_kafka", "socket", "subprocess", "threading", "time"}
MODULES = sorted(SOURCE.rglob("*.py"))


def layer_of(room: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room.split("/")[0] in rooms)


def imports_of(path: Path) -> set[str]:
    """Modules, also where a package is named and the module stands behind `import`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = (SOURCE.parent / inner.replace(".", "/")).with_suffix(".py").exists()
                names.add(inner if is_module else node.module)
    return names


def room_of(module: str) -> str:
    """The package; inside the Spark host its rooms, because they run in different processes,
    and its two modules that belong to no single one."""
    parts = module.split(".")[1:]
    if parts[:2] == ["hosts", "spark"]:
        return "/".join(parts[:3])
    return "/".join(parts[:2]) if parts[0] == "hosts" else parts[0]


def module_of(path: Path) -> str:
    return ".".join(("spillway", *path.relative_to(SOURCE).with_suffix("").parts))


def rooms_touched() -> dict[str, set[str]]:
    touched: dict[str, set[str]] = {}
    for path in MODULES:
        if path.name == "__init__.py":
            continue
        room = room_of(module_of(path))
        others = {room_of(name) for name in imports_of(path) if name.startswith("spillway.")}
        touched.setdefault(room, set()).update(others - {room})
    return touched


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_from_the_edge_to_the_core(path: Path) -> None:
    if path.name == "__init__.py":
        return
    room = room_of(module_of(path))
    for name in imports_of(path):
        if name.startswith("spillway."):
            assert layer_of(room_of(name)) <= layer_of(room), f"{room} may not import {name}"


def test_rooms_do_not_need_each_other() -> None:
    touched = rooms_touched()

    def reached(room: str, seen: set[str]) -> set[str]:
        for other in touched.get(room, set()) - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    cycles = sorted(room for room in touched if room in reached(room, set()))
    assert not cycles, f"these rooms import each other: {cycles}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_pure_modules_do_no_io_and_know_no_time(path: Path) -> None:
    room = path.relative_to(SOURCE).with_suffix("").parts[0]
    if room not in PURE | CORE - {"clock"}:
        return
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert not roots & PURE_MAY_NOT_IMPORT


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=str)
def test_package_files_stay_empty_so_that_workers_import_little(path: Path) -> None:
    assert path.read_text() == ""
