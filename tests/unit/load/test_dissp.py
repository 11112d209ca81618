"""DISSP: equations 6 and 7, the clamp and the warning."""

import warnings

import pytest

from spillway.load.dissp import Dissp, largest_stable_gain
from spillway.model import Backlog, Target


def decide(law, measure, waiting: int, delay_s: float | None, target_s: float = 1.0) -> int:  # type: ignore[no-untyped-def]
    measurement = measure(
        period_s=0.25,
        target=Target(delay_s=target_s),
        delay_s=delay_s,
        queued_tuples=waiting,
        backlog=Backlog(pending_tuples=waiting),
    )
    kept: int = law.decide(measurement).action.tuples
    return kept


def test_equation_7_keeps_less_by_the_relative_error(measure) -> None:  # type: ignore[no-untyped-def]
    law = Dissp()
    assert decide(law, measure, 1000, 1.5) == 950  # 1000 + 0.1 x 1000 x (1 - 1.5) / 1
    assert decide(law, measure, 1000, 2.0) == 855


def test_equation_6_takes_the_count_from_when_the_measured_tuples_entered(measure) -> None:  # type: ignore[no-untyped-def]
    law = Dissp(equation=6)
    assert decide(law, measure, 1000, 2.0) == 950  # no history yet: 1000 + 0.1 x 1000 x (1 - 2) / 2
    assert decide(law, measure, 1000, 2.0) == 902  # 950 - 0.05 x 950
    for _ in range(7):
        decide(law, measure, 1000, 2.0)
    before = decide(law, measure, 1000, 2.0)
    assert before - decide(law, measure, 1000, 2.0) > 0.04 * before  # steps of the older, larger n


def test_the_count_never_sticks_at_zero(measure) -> None:  # type: ignore[no-untyped-def]
    law = Dissp(gain=0.2)
    for _ in range(100):
        decide(law, measure, 1000, 100.0)
    assert decide(law, measure, 1000, 100.0) == 10  # one per cent stays
    for _ in range(60):
        kept = decide(law, measure, 1000, 0.1)
    assert kept == 1000


def test_underload_does_not_wind_it_up(measure) -> None:  # type: ignore[no-untyped-def]
    law = Dissp()
    for _ in range(1000):
        assert decide(law, measure, 50, 0.1) == 50
    assert decide(law, measure, 500, 0.1) == 500  # a higher load alone sheds nothing
    assert decide(law, measure, 500, 1.5) == 475  # and the first late tuples are answered at once


def test_the_papers_own_gain_is_outside_its_bound_at_three_seconds(measure) -> None:  # type: ignore[no-untyped-def]
    assert largest_stable_gain(3.0, 0.25) == pytest.approx(0.08)
    law = Dissp()
    with pytest.warns(RuntimeWarning, match=r"gain 0\.1 is outside .* 0\.08"):
        decide(law, measure, 100, 1.0, target_s=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        decide(law, measure, 100, 1.0, target_s=3.0)
        decide(Dissp(), measure, 100, 1.0, target_s=2.0)  # bound 0.118


def test_one_spike_of_the_latency_does_not_end_the_stream(measure) -> None:  # type: ignore[no-untyped-def]
    """Downtime or a pause: a latency of thirty targets, once."""
    law = Dissp()
    decide(law, measure, 1000, 60.0)
    for _ in range(40):
        kept = decide(law, measure, 1000, 0.5)
    assert kept == 1000
