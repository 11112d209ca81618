"""Sizes: a file, a function and a list of parameters that can be read at one glance."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILE_LINES, FUNCTION_LINES, PARAMETERS = 300, 40, 7
MODULES = sorted(SOURCE.rglob("*.py"))

MANY_OPTIONS = {"spillway_lab/commands/simulate.py"}  # typer declares options as parameters

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def parameters_of(function: Function) -> int:
    declared = function.args
    named = (*declared.posonlyargs, *declared.args, *declared.kwonlyargs)
    rest = (declared.vararg, declared.kwarg)
    return sum(one is not None and one.arg not in ("self", "cls") for one in (*named, *rest))


def too_large(path: Path) -> Iterator[str]:
    text, name = path.read_text(), name_of(path)
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{name} has {lines} lines, at most {FILE_LINES}: make two files of it"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, Function):
            continue
        place = f"{name}:{node.lineno} {node.name}"
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            yield f"{place} has {lines} lines, at most {FUNCTION_LINES}: take a step out of it"
        if (count := parameters_of(node)) > PARAMETERS and name not in MANY_OPTIONS:
            yield f"{place} has {count} parameters, at most {PARAMETERS}: group what belongs"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_functions_and_parameter_lists_stay_small(path: Path) -> None:
    found = list(too_large(path))
    assert not found, "\n".join(found)
