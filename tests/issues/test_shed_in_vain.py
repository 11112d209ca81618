"""Tuples that were taken for what made batches long, and were not."""

import numpy as np
import pytest

from spillway.classes.control import ClassTerms
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.model import Target


@pytest.mark.parametrize("slower", [4.5, 6.0])
def test_shedding_that_shortens_no_batch_ends(slower: float) -> None:
    """Ten times the rate from second 20 on, and just then others take the machine: batches that
    grew and got longer look as if it were their tuples."""
    log = CurveLog(np.array([0.0, 20.0, 300.0]), np.array([0.0, 200.0, 28_200.0]))
    cost = BatchCost(fixed_s=0.1, kept_s=1e-6, noise=0.05)
    options = GateOptions.parse({"delay": "500ms"})
    query = VirtualQuery(name="q", log=log, options=options, cost=cost)
    host = VirtualHost([query], {"default": ClassTerms(priority=1, target=Target(delay_s=0.5))})
    host.speed = lambda time_s: 1.0 if time_s < 20.0 else 1.0 / slower
    host.advance(60.0)
    soon = host.lanes["q"].at.totals.shed
    host.advance(300.0)
    assert 0 < soon < 0.2 * 4_000, "it is taken for an overload, and soon no more"
    assert host.lanes["q"].at.totals.shed < soon + 0.01 * 24_000


def test_a_few_tuples_on_a_slow_machine_show_nothing_of_thousands() -> None:
    """A batch of 4 tuples that meets a slow machine, and then 2 % of what the machine carries."""
    log = CurveLog(np.array([0.0, 10.5, 90.0]), np.array([0.0, 42.0, 1_513_461.0]))
    cost = BatchCost(fixed_s=0.5, kept_s=1 / 960_678, noise=0.1)
    options = GateOptions.parse({"delay": "2s"})
    query = VirtualQuery(name="q", log=log, options=options, cost=cost)
    terms = {"default": ClassTerms(priority=1, target=Target(delay_s=2.0))}
    host = VirtualHost([query], terms, seed=211)
    host.speed = lambda time_s: 0.1 if 9.4 <= time_s < 14.8 else 1.0
    host.advance(90.0)
    assert host.lanes["q"].at.totals.shed == 0
