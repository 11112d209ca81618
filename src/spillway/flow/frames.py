"""Queries that are DataFrame code: a function whose arguments are named as the streams it reads."""

import ast
import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, shown

Frame = Callable[..., Any]


def arguments_of(name: str, code: str | Frame) -> tuple[str, ...]:
    """Their names. A function in a file is looked at, not run."""
    if not isinstance(code, str):
        return tuple(inspect.signature(code).parameters)
    module, _, function = code.partition(":")
    for node in _tree(name, module).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            given = node.args
            return tuple(a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    raise SpillwayError(
        f"queries.{name}.python is '{shown(code)}': module '{module}' has no function"
        f" '{shown(function)}' at its top"
    )


def function_of(name: str, code: str | Frame) -> Frame:
    if not isinstance(code, str):
        return code
    module, _, function = code.partition(":")
    try:
        found: Frame = getattr(import_module(module), function)
    except Exception as error:  # somebody's own code, as it is imported
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise SpillwayError(
            f"queries.{name}.python: '{module}' cannot be imported ({said})"
        ) from error
    return found


def _tree(name: str, module: str) -> ast.Module:
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise ImportError(f"there is no module '{module}' beside the flow file or installed")
        return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        said = " ".join(str(error).split())
        raise SpillwayError(
            f"queries.{name}.python: '{shown(module)}' cannot be read ({said})"
        ) from None
