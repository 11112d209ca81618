"""Do the tests notice when the code is broken? `make mutants`.

Breaks one expression at a time (an operator, a comparison, a connective, branches, min and max) in
the pure rooms, and runs the tests that mirror the file, without Spark. A mutant that no test
notices is printed with its line. The sample is drawn with a fixed seed; mutants that change nothing
that can be seen are listed in EQUIVALENT with the reason.

python tests/mutants.py [COUNT] [SEED] [ROOM ...]
"""

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("gate", "load", "classes", "cluster")
NOTICED = 0.95  # the goal, of those that are not equivalent
LONGEST_S = 240.0

# What is run for a room: the tests that mirror it, and the laws over all of them.
TESTS = {
    "gate": ("unit/gate", "properties/test_gate_accounting.py", "unit/hosts/spark/planner"),
    "load": ("unit/load", "contract/test_load_managers.py", "unit/gate"),
    "classes": ("unit/classes", "properties/test_classes_sharing.py", "unit/hosts/spark/driver"),
    "cluster": ("unit/cluster", "properties/test_fit_optimum.py"),
}
SHARES = {"gate": 40, "load": 25, "classes": 15, "cluster": 20}  # of the sample, in percent

# file: {(line's text, what it became): why nothing can be seen}
EQUIVALENT: dict[tuple[str, str, str], str] = {}

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    path: Path  # below src/spillway
    line: int
    before: str
    after: str
    source: str  # of the whole file

    @property
    def room(self) -> str:
        return self.path.parts[0]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.path.as_posix(), self.before, self.after


Place = tuple[Path, int, str]  # a file, the number of a node in its tree, what is done to it


def places_in(path: Path) -> Iterator[Place]:
    """Of every mutant of a file."""
    tree = ast.parse((ROOT / "src" / "spillway" / path).read_text())
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            yield path, number, change


def mutant_at(place: Place) -> Mutant:
    path, number, change = place
    tree = ast.parse((ROOT / "src" / "spillway" / path).read_text())
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == number)
    before = ast.unparse(node)
    _apply(node, change)
    return Mutant(
        path=path,
        line=getattr(node, "lineno", 0),
        before=before,
        after=ast.unparse(node),
        source=ast.unparse(ast.fix_missing_locations(tree)),
    )


def _changes(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED and not _is_type(node):
        yield "operator"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        yield "comparison"
    elif isinstance(node, ast.BoolOp):
        yield "connective"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation"
    elif isinstance(node, ast.IfExp):
        yield "branches"
    elif _is_extremum(node):
        yield "extremum"


def _is_extremum(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return named and node.func.id in ("min", "max") and len(node.args) > 1  # type: ignore[attr-defined]


def _is_type(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.BitOr)


def _apply(node: ast.AST, change: str) -> None:
    if change == "operator" and isinstance(node, ast.BinOp):
        node.op = _SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif change == "comparison" and isinstance(node, ast.Compare):
        node.ops = [_SWAPPED[type(node.ops[0])]()]  # type: ignore[list-item]
    elif change == "connective" and isinstance(node, ast.BoolOp):
        node.op = _SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif change == "negation" and isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)
    elif change == "branches" and isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif change == "extremum" and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        node.func.id = {"min": "max", "max": "min"}[node.func.id]


def sample(count: int, seed: int, rooms: tuple[str, ...]) -> list[Mutant]:
    """The same mutants for the same code; every file of a room has its chance."""
    chosen: list[Mutant] = []
    for room in rooms:
        files = sorted((ROOT / "src" / "spillway" / room).rglob("*.py"))
        every = [
            place
            for file in files
            for place in places_in(file.relative_to(ROOT / "src" / "spillway"))
        ]
        share = max(1, round(count * SHARES[room] / sum(SHARES[r] for r in rooms)))
        drawn = random.Random(f"{seed}/{room}").sample(every, min(share, len(every)))
        chosen += map(mutant_at, drawn)
    return chosen


def tests_for(mutant: Mutant) -> list[str]:
    """Those whose name has the file's first, because the first failure ends the run."""
    stem = mutant.path.stem
    every = [ROOT / "tests" / name for name in TESTS[mutant.room]]
    near = [
        path
        for folder in every
        for path in ([folder] if folder.is_file() else sorted(folder.rglob("test_*.py")))
        if any(word in path.stem for word in stem.split("_") if len(word) > 3)
    ]
    return [str(path) for path in dict.fromkeys([*near, *every])]


def is_noticed(mutant: Mutant, source: Path) -> bool:
    """In a copy of the source: what others see of the tree stays as it is."""
    target = source / "spillway" / mutant.path
    whole = target.read_text()
    target.write_text(mutant.source)
    words = ["-q", "-x", "-m", "not spark and not kafka and not slow", "-p", "no:cacheprovider"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_MAX_EXAMPLES": "20",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *tests_for(mutant)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:  # it never ends: that is noticed
        return True
    finally:
        target.write_text(whole)
    return done.returncode != 0


def main() -> None:
    words = sys.argv[1:]
    count = int(words[0]) if words else 400
    seed = int(words[1]) if len(words) > 1 else 20
    rooms = tuple(words[2:]) or ROOMS
    found: Counter[tuple[str, bool]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in sample(count, seed, rooms):
            if mutant.key in EQUIVALENT:
                continue
            noticed = is_noticed(mutant, source)
            found[mutant.room, noticed] += 1
            if not noticed:
                where = f"src/spillway/{mutant.path}:{mutant.line}"
                print(f"{where}: {mutant.before}  ->  {mutant.after}", flush=True)
    for room in rooms:
        print(f"{room}: {found[room, True]} of {found[room, True] + found[room, False]} noticed")
    total = sum(found.values())
    share = sum(n for (_, noticed), n in found.items() if noticed) / max(1, total)
    print(f"{share:.1%} of {total} noticed; the goal is {NOTICED:.0%}")
    sys.exit(share < NOTICED)


if __name__ == "__main__":
    main()
