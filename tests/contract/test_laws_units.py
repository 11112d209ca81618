"""What a law decides does not depend on the unit of time."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_load_managers import measurements

from spillway.load.laws import LAWS, make
from spillway.model import BatchRecord, Decision, Measurement, Prices

FACTOR = 4.0  # a power of two: nothing is rounded

# Parameters that have a unit of time: (in one unit, in the other).
DIMENSIONED: Mapping[str, tuple[dict[str, float], dict[str, float]]] = {
    "pie": (
        {"alpha_per_s": 0.02, "beta_per_s": 0.2},
        {"alpha_per_s": 0.02 / FACTOR, "beta_per_s": 0.2 / FACTOR},
    ),
    "pid": (
        {"least_rate_per_s": 100.0, "derivative": 0.5},
        {"least_rate_per_s": 100.0 / FACTOR, "derivative": 0.5 * FACTOR},
    ),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


prices = st.builds(
    Prices,
    fixed_s=st.floats(0.01, 3.0),
    kept_s=st.floats(1e-6, 1e-2),
    scanned_s=st.floats(0.0, 1e-6),
    pace=st.floats(0.25, 4.0),
    noise=st.floats(0.02, 0.4),
    doubts=st.tuples(
        st.floats(0.0, 0.01), *(st.just(0.0),) * 2, st.floats(0.0, 1e-14), *(st.just(0.0),) * 2
    ),
)


@st.composite
def priced(draw: st.DrawFn, statistic: str) -> Measurement:
    """Of whole microseconds: what is next to nothing would be nothing in the other unit."""
    found = draw(measurements(statistic))
    backlog, delay_s = found.backlog, found.delay_s
    return replace(
        found,
        prices=draw(st.one_of(st.none(), prices)),
        queued_load_s=round(found.queued_load_s, 6),
        offered_load=round(found.offered_load, 6),
        admitted_load=round(found.admitted_load, 6),
        busy_s=round(found.busy_s, 6),
        delay_s=None if delay_s is None else round(delay_s, 6),
        backlog=replace(
            backlog,
            mean_age_s=round(backlog.mean_age_s, 6),
            statistic_age_s=round(backlog.statistic_age_s, 6),
            oldest_age_s=round(backlog.oldest_age_s, 6),
        ),
        batches=tuple(
            replace(b, duration_s=round(b.duration_s, 6), ended_s=round(b.ended_s, 6))
            for b in found.batches
            if b.duration_s == 0.0 or b.duration_s > 1e-3
        ),
    )


def in_other_units(given: Measurement) -> Measurement:
    def batch(one: BatchRecord) -> BatchRecord:
        return replace(one, duration_s=FACTOR * one.duration_s, ended_s=FACTOR * one.ended_s)

    backlog, known = given.backlog, given.prices
    return replace(
        given,
        time_s=FACTOR * given.time_s,
        period_s=FACTOR * given.period_s,
        target=replace(given.target, delay_s=FACTOR * given.target.delay_s),
        queued_load_s=FACTOR * given.queued_load_s,
        cost_s=FACTOR * given.cost_s,
        delay_s=None if given.delay_s is None else FACTOR * given.delay_s,
        busy_s=FACTOR * given.busy_s,
        backlog=replace(
            backlog,
            mean_age_s=FACTOR * backlog.mean_age_s,
            statistic_age_s=FACTOR * backlog.statistic_age_s,
            oldest_age_s=FACTOR * backlog.oldest_age_s,
        ),
        batches=tuple(map(batch, given.batches)),
        prices=known
        and replace(
            known.slower(FACTOR), doubts=tuple(FACTOR**2 * doubt for doubt in known.doubts)
        ),
    )


def said(decision: Decision) -> tuple[object, float | None]:
    return decision.action, decision.headroom


@pytest.mark.parametrize("statistic", ["mean", "p95"])
@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_decision_does_not_depend_on_the_unit_of_time(
    name: str, statistic: str, data: st.DataObject
) -> None:
    journal = data.draw(st.lists(priced(statistic), min_size=1, max_size=12))
    first, second = DIMENSIONED.get(name, ({}, {}))
    one, other = make(name, **first), make(name, **second)
    for measurement in journal:
        assert said(one.decide(measurement)) == said(other.decide(in_other_units(measurement)))
