"""Do the tests notice when the code is broken? `make mutants`.

Breaks one expression at a time (an operator, a comparison, a connective, branches, min and max) in
the pure rooms, and runs those of the room's tests, without Spark, that come by the line. A mutant
that no test notices is printed with its line. The sample is drawn with a fixed seed; mutants that
change nothing that can be seen are listed in EQUIVALENT with the reason.

python tests/mutants.py [COUNT] [SEED] [ROOM ...]
"""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("gate", "load", "classes", "cluster")
NOTICED = 0.95  # the goal, of those that are not equivalent
LONGEST_S = 120.0
FAST = "not spark and not kafka and not slow"
FAILED = (1, 2)  # what pytest says where a test fails, or cannot be imported
NO_TESTS = 5

# What is run for a room: the tests that mirror it, and the laws over all of them.
TESTS = {
    "gate": ("unit/gate", "properties/test_gate_accounting.py", "unit/hosts/spark/planner"),
    "load": ("unit/load", "contract/test_load_managers.py", "unit/gate"),
    "classes": ("unit/classes", "properties/test_classes_sharing.py", "unit/hosts/spark/driver"),
    "cluster": (
        "unit/cluster",
        "properties/test_fit_optimum.py",
        "properties/test_migration_exact.py",
        "properties/test_migration_sequences.py",
    ),
}
SHARES = {"gate": 40, "load": 25, "classes": 15, "cluster": 20}  # of the sample, in percent

_BOTH = "differs where two measured numbers are equal to the last bit"
# (file, what stood there, what it became): why nothing can be seen
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "load/batch_model.py",
        "self._streak * sign > 0",
        "self._streak * sign >= 0",
    ): "no streak and one more on this side are one",
    (
        "load/seamless.py",
        "abs(self._headroom.hear(told) - 1.0) > _NEW_QUOTA",
        "abs(self._headroom.hear(told) - 1.0) >= _NEW_QUOTA",
    ): _BOTH,
    (
        "load/pie.py",
        "max(delay_s, self._before_s) < target_s / 2.0",
        "max(delay_s, self._before_s) <= target_s / 2.0",
    ): "at half of the target nothing is dropped either way",
    ("gate/evidence.py", "takes_s > room.length_s", "takes_s >= room.length_s"): _BOTH,
    ("classes/balance.py", "abs(quota - c.quota) < 1e-06", "abs(quota - c.quota) <= 1e-06"): _BOTH,
    (
        "classes/balance.py",
        "query.cost_s * query.rate_per_s + fixed >= query.at_most",
        "query.cost_s * query.rate_per_s + fixed > query.at_most",
    ): _BOTH,
    ("classes/control.py", "max(used) > 1.0", "max(used) >= 1.0"): _BOTH,
    (
        "cluster/scaling/true_rate.py",
        "backlog_s(host) > CATCH_UP_S * room",
        "backlog_s(host) >= CATCH_UP_S * room",
    ): _BOTH,
    (
        "cluster/views.py",
        "self.memory_mb <= free.memory_mb + 1e-09",
        "self.memory_mb < free.memory_mb + 1e-09",
    ): _BOTH,
    ("cluster/coordinator/room.py", "free >= own[0] - EPS", "free > own[0] - EPS"): _BOTH,
    (
        "classes/control.py",
        "self._used.get(name, 0.0) > 1.0",
        "self._used.get(name, 0.0) >= 1.0",
    ): _BOTH,
    (
        "classes/parts.py",
        "keep_fraction <= least",
        "keep_fraction < least",
    ): "at the least both parts are kept alike by the formula too",
    (
        "classes/policies.py",
        "lacking_high <= 0.0",
        "lacking_high < 0.0",
    ): "where nothing is lacking the formula moves nothing",
    (
        "classes/policies.py",
        "high.need + low.need <= 0.0",
        "high.need + low.need < 0.0",
    ): "without a need nothing is lacking, which is asked first",
}

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


@dataclass(frozen=True)
class Reached:
    """Which tests come by a line."""

    tests: Mapping[tuple[Path, int], frozenset[str]]

    @classmethod
    def of(cls, room: str, source: Path) -> "Reached":
        """From one run of the room's tests over the code as it is."""
        measured, root = source.parent / f"{room}.coverage", source / "spillway"
        words = [
            f"--cov={root / room}",
            "--cov-context=test",
            "--cov-report=",
            "--cov-config=/dev/null",
        ]
        done = run_tests(tests_of(room), source, *words, COVERAGE_FILE=str(measured))
        if done.returncode != 0:
            sys.exit(f"the tests of {room} fail as they are:\n{done.stdout.decode()[-2000:]}")
        data = CoverageData(str(measured))
        data.read()
        return cls(
            {
                (Path(file).relative_to(root), line): frozenset(
                    context.rpartition("|")[0] for context in contexts if context
                )
                for file in data.measured_files()
                for line, contexts in data.contexts_by_lineno(file).items()
            }
        )

    def by(self, mutant: Mutant) -> frozenset[str]:
        """Empty where the line runs as the module is imported."""
        return self.tests.get((mutant.path, mutant.line), frozenset())


def tests_of(room: str) -> list[str]:
    return [str(ROOT / "tests" / name) for name in TESTS[room]]


def near(mutant: Mutant) -> list[str]:
    """Those whose name has the file's first, because the first failure ends the run."""
    words = [word for word in mutant.path.stem.split("_") if len(word) > 3]
    files = (file for name in tests_of(mutant.room) for file in Path(name).rglob("test_*.py"))
    found = [str(file) for file in files if any(word in file.stem for word in words)]
    return list(dict.fromkeys([*found, *tests_of(mutant.room)]))


def run_tests(
    tests: list[str], source: Path, *words: str, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pytest", "-q", "-m", FAST, "-p", "no:cacheprovider"]
    given = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    return subprocess.run(
        [*command, *words, *tests], cwd=ROOT, env=given, capture_output=True, check=False
    )


def is_noticed(mutant: Mutant, source: Path, reached: Reached) -> bool:
    """In a copy of the source: what others see of the tree stays as it is."""
    target, chosen = source / "spillway" / mutant.path, source.parent / "chosen.json"
    whole, asked = target.read_text(), sorted(reached.by(mutant))
    chosen.write_text(json.dumps(asked))
    files = dict.fromkeys(str(ROOT / test.partition("::")[0]) for test in asked)
    tests = [name for name in near(mutant) if not asked or name in files]
    target.write_text(mutant.source)
    try:
        done = run_tests(
            list(dict.fromkeys([*tests, *files])),
            source,
            *("-x", "-p", "mutants", f"--timeout={LONGEST_S:g}"),
            SPILLWAY_CHOSEN=str(chosen),
        )
    finally:
        target.write_text(whole)
    if done.returncode not in (0, NO_TESTS, *FAILED):
        sys.exit(f"pytest ends with {done.returncode}: {done.stdout.decode()[-2000:]}")
    return done.returncode in FAILED


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """As a plugin of pytest: only the tests that were chosen, where some were."""
    chosen = set(json.loads(Path(os.environ["SPILLWAY_CHOSEN"]).read_text()))
    if chosen:
        items[:] = [item for item in items if item.nodeid in chosen]


def main() -> None:
    words = sys.argv[1:]
    count = int(words[0]) if words else 400
    seed = int(words[1]) if len(words) > 1 else 20
    rooms = tuple(words[2:]) or ROOMS
    found: Counter[tuple[str, bool]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        reached = {room: Reached.of(room, source) for room in rooms}
        for mutant in sample(count, seed, rooms):
            if mutant.key in EQUIVALENT:
                continue
            noticed = is_noticed(mutant, source, reached[mutant.room])
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
