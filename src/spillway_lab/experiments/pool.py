"""Independent runs on two processes. Results do not depend on how many there are."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

from spillway.report import Progress, silent

WORKERS = 2

Spec = TypeVar("Spec")
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)


def run_all(
    run: Callable[[Spec], Result],
    specs: Sequence[Spec],
    progress: Progress = silent,
    label: Callable[[Spec], str] = str,
    workers: int | None = None,
) -> list[Result]:
    """`run` of every spec, in the order of the specs. `run` and specs must be picklable."""
    workers = WORKERS if workers is None else workers
    if workers <= 1 or len(specs) <= 1:
        return _in_turn(run, specs, progress, label)
    found: dict[int, Result] = {}
    # A spawned process starts clean: no threads of a progress bar, no open sessions.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run, spec): i for i, spec in enumerate(specs)}
        for done in as_completed(running):
            place = running[done]
            found[place] = done.result()
            progress(label(specs[place]), len(found) / len(specs))
    return [found[i] for i in range(len(specs))]


def run_named(
    run: Callable[[Spec], Result], specs: Mapping[Key, Spec], progress: Progress = silent
) -> dict[Key, Result]:
    """The same for specs that have names, or other keys: each result under its own."""
    return dict(zip(specs, run_all(run, list(specs.values()), progress), strict=True))


def _in_turn(
    run: Callable[[Spec], Result],
    specs: Sequence[Spec],
    progress: Progress,
    label: Callable[[Spec], str],
) -> list[Result]:
    found = []
    for i, spec in enumerate(specs):
        progress(label(spec), i / len(specs))
        found.append(run(spec))
    return found
