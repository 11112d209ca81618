"""What every load manager promises, whatever it measures."""

import math
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.load.laws import LAWS, make
from spillway.model import (
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    KeepOfBacklog,
    Measurement,
    Target,
)

every_law = pytest.mark.parametrize("name", LAWS)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # dissp says when its gain is too high
        yield


seconds = st.floats(0.0, 100.0)
counts = st.integers(0, 10**7)


@st.composite
def measurements(draw: st.DrawFn, statistic: str = "mean") -> Measurement:
    """Anything a plant could report, contradictions included: a monitor may be wrong."""
    offered, pending = draw(counts), draw(st.one_of(st.just(0), counts))
    cost_s = draw(st.one_of(st.just(0.0), st.floats(1e-7, 0.1)))
    age_s = draw(seconds)
    shed = draw(st.integers(0, offered))
    batches = draw(
        st.lists(
            st.builds(
                BatchRecord,
                kept_tuples=counts,
                scanned_tuples=counts,
                duration_s=st.floats(0.0, 50.0),
                ended_s=seconds,
            ),
            max_size=3,
        )
    )
    return Measurement(
        time_s=draw(seconds),
        period_s=draw(st.floats(0.01, 10.0)),
        target=Target(delay_s=draw(st.floats(0.01, 20.0)), statistic=statistic),  # type: ignore[arg-type]
        offered_tuples=offered,
        admitted_tuples=offered - shed,
        shed_tuples=shed,
        completed_tuples=draw(counts),
        queued_tuples=draw(counts),
        queued_load_s=draw(seconds),
        offered_load=draw(st.floats(0.0, 1000.0)),
        admitted_load=draw(st.floats(0.0, 1000.0)),
        cost_s=cost_s,
        delay_s=draw(st.one_of(st.none(), seconds)),
        busy_s=draw(seconds),
        backlog=Backlog(
            pending_tuples=pending, mean_age_s=age_s, statistic_age_s=age_s, oldest_age_s=2 * age_s
        ),
        batches=tuple(batches),
        batch_running=draw(st.booleans()),
        headroom=draw(st.one_of(st.none(), st.floats(0.01, 8.0))),
    )


def assert_sane(decision: Decision, measurement: Measurement) -> None:
    action = decision.action
    if isinstance(action, KeepFraction):
        assert 0.0 <= action.fraction <= 1.0
    else:
        assert isinstance(action, KeepOfBacklog)
        assert isinstance(action.tuples, int)
        assert 0 <= action.tuples <= measurement.backlog.pending_tuples
    assert decision.reason
    assert decision.headroom is None or 0.0 < decision.headroom < math.inf


@every_law
@settings(max_examples=40, deadline=None)
@given(journal=st.lists(measurements(), min_size=1, max_size=12))
def test_a_decision_is_never_negative_never_above_what_there_is_and_never_nan(
    name: str, journal: list[Measurement]
) -> None:
    law = make(name)
    for measurement in journal:
        assert_sane(law.decide(measurement), measurement)


@every_law
@settings(max_examples=20, deadline=None)
@given(journal=st.lists(measurements("p95"), min_size=1, max_size=12))
def test_a_journal_that_is_replayed_gives_the_same_decisions(
    name: str, journal: list[Measurement]
) -> None:
    first, again = make(name), make(name)
    assert [first.decide(m) for m in journal] == [again.decide(m) for m in journal]


@every_law
@settings(max_examples=20, deadline=None)
@given(journal=st.lists(measurements(), max_size=8))
def test_nothing_is_shed_when_idle_whatever_happened_before(
    name: str, journal: list[Measurement]
) -> None:
    law = make(name)
    for measurement in journal:
        law.decide(measurement)
    decision = law.decide(idle_measurement())
    if isinstance(decision.action, KeepFraction):
        assert decision.action.fraction == 1.0
    # A count of zero out of nothing that waits sheds nothing.


@every_law
def test_a_light_load_is_not_shed_except_by_a_fixed_share(name: str) -> None:
    law = make(name)
    for k in range(50):
        action = law.decide(light_measurement(float(k))).action
        kept = (
            action.fraction * 20
            if isinstance(action, KeepFraction)
            else action.tuples / 2 * 20  # of the two that wait
        )
        assert kept == (10.0 if name == "fixed" else 20.0)


def idle_measurement() -> Measurement:
    return Measurement(
        time_s=0.0,
        period_s=1.0,
        target=Target(delay_s=2.0),
        offered_tuples=0,
        admitted_tuples=0,
        shed_tuples=0,
        completed_tuples=0,
        queued_tuples=0,
        queued_load_s=0.0,
        offered_load=0.0,
        admitted_load=0.0,
        cost_s=0.0,
        delay_s=None,
        busy_s=0.0,
    )


def light_measurement(time_s: float) -> Measurement:
    """A tenth of the capacity, a few milliseconds of delay; two tuples wait."""
    return Measurement(
        time_s=time_s,
        period_s=1.0,
        target=Target(delay_s=2.0),
        offered_tuples=20,
        admitted_tuples=20,
        shed_tuples=0,
        completed_tuples=20,
        queued_tuples=2,
        queued_load_s=0.01,
        offered_load=0.1,
        admitted_load=0.1,
        cost_s=0.005,
        delay_s=0.007,
        busy_s=0.1,
        backlog=Backlog(pending_tuples=2, mean_age_s=0.001, statistic_age_s=0.001),
    )
