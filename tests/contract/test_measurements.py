"""Every number of a Measurement, on every host, against a brute-force count."""

from itertools import pairwise

import numpy as np
import pytest
from hosts import HOSTS, Story

from spillway.gate.measuring import headroom
from spillway.model import Measurement

TICK_S = 1e-5  # offsets hold whole microseconds

every_host = pytest.mark.parametrize("host", HOSTS)
every_pace = pytest.mark.parametrize(
    "options",
    [
        {"manager": "ctrl"},
        {"manager": "aloma", "period": "3s"},
        {"manager": "seamless", "delay": "p95 3s"},
        {"manager": "dissp"},
        {"manager": "predictive", "delay": "p99 2s"},
    ],
    ids=lambda options: " ".join(options.values()),
)
rates = pytest.mark.parametrize("rate_per_s", [300.0, 2500.0])


def spans(story: Story) -> list[tuple[float, Measurement]]:
    """Each measurement but the first, with the time of the one before."""
    assert len(story.measured) > 5
    return [(before.time_s, now) for before, now in pairwise(story.measured)]


@every_host
@every_pace
@rates
def test_counts_are_those_of_the_period(
    host: str, options: dict[str, str], rate_per_s: float
) -> None:
    story = HOSTS[host](rate_per_s, **options)
    for since_s, now in spans(story):
        planned = [r for r in story.ran if since_s - TICK_S < r.planned_s < now.time_s - TICK_S]
        ended = [r for r in story.ran if since_s < r.ended_s <= now.time_s]
        kept = sum(r.arrived_s.size for r in planned)
        assert now.period_s == pytest.approx(now.time_s - since_s)
        assert now.offered_tuples == story.arrived_by(now.time_s) - story.arrived_by(since_s)
        assert now.admitted_tuples == kept
        assert now.shed_tuples == sum(r.batch.offered_tuples for r in planned) - kept
        assert now.completed_tuples == sum(r.arrived_s.size for r in ended)
        assert now.busy_s == pytest.approx(sum(r.ended_s - r.planned_s for r in ended), abs=1e-4)
        assert len(now.batches) == len(ended)
        assert not now.batch_running


@every_host
@every_pace
@rates
def test_the_delay_is_the_statistic_over_the_tuples_that_completed(
    host: str, options: dict[str, str], rate_per_s: float
) -> None:
    story = HOSTS[host](rate_per_s, **options)
    seen = 0
    for since_s, now in spans(story):
        ended = [r for r in story.ran if since_s < r.ended_s <= now.time_s and r.arrived_s.size]
        if not ended:
            assert now.delay_s is None
            continue
        delays_s = np.concatenate([r.ended_s - r.arrived_s for r in ended])
        quantile = now.target.quantile
        true_s = delays_s.mean() if quantile is None else np.quantile(delays_s, quantile)
        if delays_s.size > 200:  # few tuples have no percentiles to speak of
            seen += 1
            assert now.delay_s == pytest.approx(true_s, rel=0.03, abs=0.02)
    assert seen > 5


@every_host
@every_pace
@rates
def test_what_waits_is_what_no_batch_has_taken(
    host: str, options: dict[str, str], rate_per_s: float
) -> None:
    story = HOSTS[host](rate_per_s, **options)
    for _, now in spans(story):
        taken = sum(r.batch.offered_tuples for r in story.ran if r.planned_s < now.time_s - TICK_S)
        waiting = story.times_s[taken : story.arrived_by(now.time_s)]
        assert now.backlog.pending_tuples == waiting.size
        if waiting.size:
            assert now.backlog.mean_age_s == pytest.approx(
                now.time_s - waiting.mean(), rel=0.02, abs=0.005
            )
            assert now.backlog.oldest_age_s == pytest.approx(now.time_s - waiting[0], abs=0.01)


@every_host
@pytest.mark.parametrize("options", [{"manager": "ctrl"}, {"manager": "seamless"}])
def test_the_queue_is_what_a_tuple_meets_and_gives_its_delay(
    host: str, options: dict[str, str]
) -> None:
    """By Little's law queue x c / H is the delay: over a settled run the two must agree."""
    story = HOSTS[host](2500.0, **options)
    settled = [m for _, m in spans(story) if m.time_s > 35.0 and m.delay_s is not None]
    for now in settled:
        rate = now.offered_tuples / now.period_s
        assert now.headroom == pytest.approx(headroom(now.prices, now.target, 1.0, rate))
        assert now.queued_load_s == pytest.approx(now.queued_tuples * now.cost_s, rel=0.01)
    told_s = np.mean([m.queued_load_s / (m.headroom or 1.0) for m in settled])
    true_s = np.mean([m.delay_s for m in settled if m.delay_s is not None])
    assert told_s == pytest.approx(true_s, rel=0.1)
