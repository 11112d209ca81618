"""unimico-exact: random hand-offs, compared with what would have come out without them."""

from collections import Counter

import numpy as np

from spillway.report import Table
from spillway_lab.experiments.report import Check, Experiment, Report, Setup
from spillway_lab.workloads.migration_cases import SHAPES, judge, random_case

CASES = 10_000


def run_exact(setup: Setup) -> Report:
    """Random windows, slides, rates, moments: 10,000 hand-offs."""
    rng = np.random.default_rng(setup.seed)
    tally: dict[str, Counter[str]] = {shape: Counter() for shape in SHAPES}
    done = 0
    while done < CASES:
        case = random_case(rng)
        verdict = judge(case)
        if not verdict.handed_over:  # the input ended before the destination could count it
            continue
        done += 1
        tally[case.shape].update(
            cases=1, exact=verdict.exact, ordered=verdict.ordered, both=verdict.both_sides
        )
        if done % 100 == 0:
            setup.progress("hand-offs", done / CASES)
    total: Counter[str] = sum(tally.values(), Counter())
    rows = [
        (shape, *(t[k] for k in ("cases", "exact", "both", "ordered")))
        for shape, t in (*tally.items(), ("all", total))
    ]
    columns = ("query", "hand-offs", "exact", "output on both nodes", "same list when appended")
    return Report(
        experiment="unimico-exact",
        setup=setup,
        results={shape: dict(t) for shape, t in (*tally.items(), ("all", total))},
        checks=[
            Check(
                name="output with migration equals output without",
                paper="exactly the same (3 queries)",
                here=f"{total['exact']} of {total['cases']} hand-offs, tuple for tuple",
                holds=total["exact"] == total["cases"],
            )
        ],
        tables=[Table(title="random hand-offs", columns=columns, rows=rows)],
    )


EXPERIMENTS = (
    Experiment(
        name="unimico-exact",
        title="10,000 random hand-offs: is the output the same, tuple for tuple?",
        source="DILoS thesis, section 7.2",
        run=run_exact,
    ),
)
