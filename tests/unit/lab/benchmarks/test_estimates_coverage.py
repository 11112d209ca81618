"""A small version of `spillway bench estimates`: how often the bounds hold."""

import numpy as np

from spillway_lab.benchmarks.estimates import Population, Tally, _onset, _strata, _uniform


def test_bounds_hold_where_shedding_begins_inside_the_window() -> None:
    rng, onset = np.random.default_rng(9), Tally()
    for trial in range(60):
        stream = Population.draw(rng, head=False)
        onset.add(stream, _onset(stream, 0.3, trial))
    for aggregate in ("count", "sum", "avg"):
        assert 0.9 < onset.covered[aggregate] / onset.bounded[aggregate] < 0.98


def test_uniform_bounds_cover_and_strata_err_less() -> None:
    rng = np.random.default_rng(7)
    uniform, strata = Tally(), Tally()
    for trial in range(60):
        stream = Population.draw(rng, head=trial % 3 == 2)
        uniform.add(stream, _uniform(stream, 0.3, trial))
        strata.add(stream, _strata(stream, 0.3, trial))
    for aggregate in ("count", "sum", "avg"):
        assert 0.92 < uniform.covered[aggregate] / uniform.bounded[aggregate] < 0.98
        assert np.mean(strata.errors[aggregate]) < 0.5 * np.mean(uniform.errors[aggregate])
    assert strata.vanished == 0
