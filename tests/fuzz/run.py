"""Runs the fuzzers: python -m fuzz.run [INPUTS] [SEED], from the folder tests.

A violation is an exception that is no refusal, a refusal that is not a printable line of decent
length, or an input that takes more than ten seconds. Every input has a number; the same seed and
number make the same input again.
"""

import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fuzz.targets import ACCEPTED, Fuzzed, targets
from spillway.errors import SpillwayError

LONGEST_S = 10.0
LONGEST_LINE = 2000
MEMORY_BYTES = 6 << 30
_SHOWN = 300


@dataclass(frozen=True, kw_only=True)
class Violation:
    target: str
    number: int
    what: str
    shown: str


class HangError(BaseException):
    """Not to be caught by what is fuzzed."""


def violations(count: int, seed: int, counts: Counter[str] | None = None) -> list[Violation]:
    found: list[Violation] = []
    with targets() as (every, died):
        drawn = random.Random(seed).choices(every, weights=[t.share for t in every], k=count)
        for number, target in enumerate(drawn):
            violation = _one(target, seed, number)
            if violation is None and died:
                violation = Violation(
                    target=target.name, number=number, what=f"a thread died: {died.pop()}", shown=""
                )
            if violation is not None:
                found.append(violation)
            if counts is not None:
                counts[target.name] += 1
    return found


def _one(target: Fuzzed, seed: int, number: int) -> Violation | None:
    rng = random.Random(f"{seed}/{number}")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        given, run = target.make(rng, folder)
        what = _wrong(run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if what is None:
        return None
    return Violation(target=target.name, number=number, what=what, shown=repr(given)[:_SHOWN])


def _wrong(run: object) -> str | None:
    try:
        with _bounded():
            run()  # type: ignore[operator]
    except SpillwayError as error:
        for line in error.problems or ("",):
            if not line.isprintable() or not line or len(line) > LONGEST_LINE:
                return f"not a line: {line[:_SHOWN]!r}"
        return None
    except ACCEPTED:
        return None
    except HangError:
        return f"takes more than {LONGEST_S:.0f} s: {_place(sys.exc_info()[2])}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:100]!r} at {_place(error.__traceback__)}"
    return None


def _place(trace: object) -> str:
    frames = traceback.extract_tb(trace)  # type: ignore[arg-type]
    ours = [f for f in frames if "/src/spillway/" in f.filename] or frames
    last = ours[-1]
    return f"{last.filename.rpartition('/src/')[2]}:{last.lineno}"


@contextmanager
def _bounded() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 31)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    counts: Counter[str] = Counter()
    began_s = time.monotonic()
    found = violations(count, seed, counts)
    for violation in found[:40]:
        print(f"{violation.target} {violation.number}: {violation.what}\n    {violation.shown}")
    per_target = ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))
    took_s = time.monotonic() - began_s
    print(f"{count} inputs in {took_s:.0f} s with seed {seed}: {len(found)} violations")
    print(per_target)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
