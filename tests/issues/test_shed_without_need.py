"""Loads of which too much was shed, or nothing although something had to go."""

import numpy as np
import numpy.typing as npt
import pytest

from spillway.classes.control import ClassTerms
from spillway.gate.delays import delay_s
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import TraceLog
from spillway.model import Target

Pieces = list[tuple[float, float, float]]  # from, until, tuples per second


def arrivals(pieces: Pieces) -> npt.NDArray[np.float64]:
    counts = [round((until - since) * rate) for since, until, rate in pieces]
    spread = [
        since + (np.arange(count) + 0.5) / rate
        for (since, _, rate), count in zip(pieces, counts, strict=True)
    ]
    return np.concatenate(spread)


def ran(pieces: Pieces, cost: BatchCost, delay: str = "2s", **options: str) -> VirtualHost:
    query = VirtualQuery(
        name="q",
        log=TraceLog(arrivals(pieces)),
        options=GateOptions.parse({"delay": delay, **options}),
        cost=cost,
    )
    terms = {"default": ClassTerms(priority=1, target=Target.parse(delay))}
    host = VirtualHost([query], terms)
    host.advance(pieces[-1][1])
    return host


def shed_share(host: VirtualHost) -> float:
    totals = host.lanes["q"].at.totals
    return totals.shed / totals.offered


def measured_s(host: VirtualHost, since_s: float, target: Target) -> float:
    found = [f.part.delays(f.ended_s) for f in host.lanes["q"].finished if f.ended_s > since_s]
    measured = delay_s(found, target)
    assert measured is not None
    return measured


# -- a target that nothing can hold


@pytest.mark.parametrize(("load", "at_most"), [(0.5, 0.0), (0.7, 0.05)])  # 0.8 is all
@pytest.mark.parametrize(
    ("delay", "fixed_s"), [("300ms", 0.3), ("500ms", 0.5), ("1s", 1.0), ("p99 1s", 0.6)]
)
def test_a_target_below_the_fixed_price_sheds_nothing_that_can_be_carried(
    delay: str, fixed_s: float, load: float, at_most: float
) -> None:
    cost = BatchCost(fixed_s=fixed_s, kept_s=1e-4, noise=0.05)
    host = ran([(0.0, 120.0, load * 1e4)], cost, delay=delay)
    assert shed_share(host) <= at_most


def test_an_overload_beyond_such_a_target_is_held_to_a_delay_that_can_be() -> None:
    cost = BatchCost(fixed_s=0.5, kept_s=1e-4, noise=0.05)
    host = ran([(0.0, 240.0, 20_000.0)], cost, delay="500ms")
    batches = host.lanes["q"].finished
    assert "cannot hold" in batches[-1].batch.rule.reason
    assert "is held instead" in batches[-1].batch.rule.reason
    late = [f for f in batches if f.ended_s > 120.0]
    kept = sum(f.batch.kept_tuples() for f in late) / (late[-1].ended_s - late[0].ended_s)
    assert kept > 0.7 * 1e4  # of what back to back batches carry
    assert measured_s(host, 120.0, Target(delay_s=1.0)) < 6.0


# -- bounds that the user set


def test_more_than_max_batch_carries_is_shed() -> None:
    cost = BatchCost(fixed_s=0.25, kept_s=1e-5, noise=0.05)  # 1,000 take 0.26 s
    host = ran([(0.0, 200.0, 8_000.0)], cost, max_batch="1000")
    assert measured_s(host, 120.0, Target(delay_s=2.0)) < 2.2
    assert 0.3 < shed_share(host) < 0.7


def test_what_max_batch_carries_is_kept() -> None:
    cost = BatchCost(fixed_s=0.25, kept_s=1e-5, noise=0.05)
    assert shed_share(ran([(0.0, 200.0, 3_000.0)], cost, max_batch="1000")) == 0.0


@pytest.mark.parametrize(("limit", "gives"), [("1% per 1m", True), ("100% per 1m", False)])
def test_a_delay_that_gives_way_to_max_shed_is_told(limit: str, gives: bool) -> None:
    cost = BatchCost(fixed_s=0.25, kept_s=1e-4, noise=0.05)
    host = ran([(0.0, 60.0, 20_000.0)], cost, max_shed=limit)
    assert host.control.loads("default", 60.0)["q"].gives_way == gives


# -- bursts


def bursts(since_s: float, until_s: float, low: float, high: float, for_s: float) -> Pieces:
    """Every 20 s, at the end of them."""
    found: Pieces = []
    for at_s in np.arange(since_s, until_s, 20.0):
        found += [(at_s, at_s + 20.0 - for_s, low), (at_s + 20.0 - for_s, at_s + 20.0, high)]
    return found


CATCHING_UP = BatchCost(fixed_s=0.25, kept_s=1e-3, noise=0.05)  # about 812 a second in 2 s
BEHIND: Pieces = [(0.0, 60.0, 300.0), (60.0, 61.0, 60_000.0)]


@pytest.mark.parametrize("high", [700.0, 800.0, 950.0])
def test_a_burst_within_a_catch_up_does_not_end_it(high: float) -> None:
    host = ran(BEHIND + bursts(61.0, 161.0, 300.0, high, 3.0), CATCHING_UP)
    lane = host.lanes["q"]
    assert "catching up" in lane.finished[-1].batch.rule.reason
    assert lane.at.totals.shed == 0


@pytest.mark.parametrize("high", [700.0, 800.0])
def test_bursts_that_fit_are_kept_during_a_catch_up_and_after_it(high: float) -> None:
    host = ran(BEHIND + bursts(61.0, 301.0, 300.0, high, 3.0), CATCHING_UP)
    lane = host.lanes["q"]
    assert "catching up" not in lane.finished[-1].batch.rule.reason
    assert lane.at.totals.shed == 0


def test_lumps_that_are_worked_off_before_the_next_are_kept() -> None:
    cost = BatchCost(fixed_s=0.25, kept_s=1e-4, noise=0.05)
    lumps = bursts(0.0, 200.0, 1_000.0, 3e6, 0.01)
    assert ran(lumps, cost).lanes["q"].at.totals.shed == 0


# -- overloads of a few per cent


@pytest.mark.parametrize("load", [1.05, 1.15])
@pytest.mark.parametrize("delay", ["2s", "p99 2s"])
def test_a_slight_overload_is_not_forgotten_again_and_again(delay: str, load: float) -> None:
    target, cost = Target.parse(delay), BatchCost(fixed_s=0.25, kept_s=1e-4, noise=0.08)
    length_s = target.delay_s / (1.0 + target.age_share)
    carries = (1.0 - cost.fixed_s / length_s) / cost.kept_s
    host = ran([(0.0, 40.0, 0.4 * carries), (40.0, 240.0, load * carries)], cost, delay=delay)
    assert measured_s(host, 160.0, target) < 1.1 * target.delay_s


# -- many queries


def test_queries_that_wait_for_their_turn_are_not_silent() -> None:
    cost = BatchCost(fixed_s=0.25, kept_s=1e-4, noise=0.05)
    queries = [
        VirtualQuery(
            name=f"q{number}",
            log=TraceLog(arrivals([(0.0, 200.0, 4_000.0)])),
            options=GateOptions.parse({"delay": "1s", "query": f"q{number}"}),
            cost=cost,
        )
        for number in range(12)
    ]
    terms = {"default": ClassTerms(priority=1, target=Target(delay_s=1.0))}
    host = VirtualHost(queries, terms, cores=2)
    host.advance(200.0)
    for name in host.lanes:
        assert host.lanes[name].at.totals.shed > 0, f"{name} is never told that it has to"
