"""One suite over every shedder: pure, exact, loyal to the decision, the same however it is cut."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.gate.arrivals import Arrivals
from spillway.gate.ledger import audit
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.pacing import Cut
from spillway.gate.planning import Settings, Waiting, next_offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.gate.shedders.blocks import DATA_BLOCK, keep, kept_positions, read_block, spans
from spillway.gate.shedders.key import Key
from spillway.gate.shedders.planned import selected
from spillway.gate.shedders.shedder import Shedder
from spillway.gate.shedders.strata import Strata
from spillway.gate.shedders.utility import Utility
from spillway.gate.shedders.windows import Windows
from spillway.ports import ArrivalCurve, Span

ROWS = 12 * DATA_BLOCK
SECOND_US = 1_000_000
SELECTIONS: dict[str, Shedder | None] = {
    "uniform": None,
    "key": Key(column="key", time_column="event_time", length_us=5 * SECOND_US),
    "utility": Utility(column="value * 2"),
    "windows": Windows(column="event_time", length_us=SECOND_US // 2),
    "strata": Strata(column="key"),
}


class ArrayLog:
    """Rows that are held in memory: 20,000 a second, skewed keys, event times a little late."""

    def __init__(self, rows: int = ROWS, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        arrival_us = 1_000_000_000_000 + np.arange(rows) * 50
        self.table = pa.table(
            {
                "key": np.minimum(rng.zipf(1.4, rows), 300),
                "value": np.round(rng.random(rows), 3),
                "event_time": pa.array(
                    arrival_us - rng.integers(0, 100_000, rows), pa.timestamp("us", tz="UTC")
                ),
                "_arrival": pa.array(arrival_us, pa.timestamp("us", tz="UTC")),
            }
        )

    def read(self, span: Span, wanted: Any) -> Iterator[pa.RecordBatch]:
        assert wanted is None
        yield from self.table.slice(span.start, span.tuples).to_batches(max_chunksize=5_000)

    def columns(self) -> Any:
        return self.table.schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return (Span(partition=0, start=0, stop=self.table.num_rows),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        raise NotImplementedError

    def commit(self, stops: Any) -> None: ...


LOG = ArrayLog()


def batches(
    selection: Shedder | None, fraction: float, sizes: list[int], seed: int = 5
) -> list[Offset]:
    """A run of the planner's pure part: batches of these sizes, each with the same decision."""
    start = Stretch(partition=0, start=0, read=0, stop=0)
    chain = [Offset(gate="g", began_us=1, seq=0, planned_us=1, stretches=(start,))]
    for size in sizes:
        previous = chain[-1]
        begin = previous.stretches[0].stop
        stretch = Stretch(partition=0, start=begin, read=begin, stop=begin + size)
        curve = ArrivalCurve(
            positions=np.array([begin, begin + size]), times_s=np.array([begin, begin + size]) / 2e4
        )
        span = Span(partition=0, start=begin, stop=begin + size)
        waiting = Waiting(
            stretches=(stretch,), arrivals=Arrivals.pool([(span, curve)]), lost_tuples=0
        )
        cut = Cut(reach_tuples=size, skip_tuples=0, fraction=fraction, reason="test")
        planned = next_offset(previous, waiting, cut, Settings(seed=seed), now_s=1.0, costs=None)
        if selection is not None:
            planned = selected(planned, previous, selection, LOG)
        chain.append(planned)
    return chain


@pytest.fixture(params=SELECTIONS)
def selection(request: pytest.FixtureRequest) -> Shedder | None:
    return SELECTIONS[request.param]


UNEVEN = [7_001, 20_000, 1, 16_384, 40_003, 333, 50_000, 30_000]


def test_the_account_is_exact_whatever_the_data(selection: Shedder | None) -> None:
    chain = batches(selection, 0.37, UNEVEN)
    assert audit(chain).problems == ()
    for offset in chain:
        found = sum(len(kept_positions(s, offset.rule, LOG)) for s in offset.stretches)
        assert found == offset.kept_tuples()


@pytest.mark.parametrize("fraction", [0.8, 0.5, 0.13])
def test_the_load_that_is_shed_is_the_load_that_was_decided(
    selection: Shedder | None, fraction: float
) -> None:
    chain = batches(selection, fraction, [8_000] * 24)
    totals = chain[-1].totals
    kept = totals.admitted / (totals.admitted + totals.shed)
    # A key or a window cannot be split: at most one of them, of everything, is missing.
    whole = {"key": 8_000, "windows": 2 * 10_000}.get(selection.name if selection else "", 24)
    assert abs(kept - fraction) <= whole / (24 * 8_000)


def test_an_offset_survives_its_encoding(selection: Shedder | None) -> None:
    for offset in batches(selection, 0.5, [10_000, 10_000]):
        assert decode(encode(offset)) == offset


def test_a_replay_keeps_the_same_tuples(selection: Shedder | None) -> None:
    offset = decode(encode(batches(selection, 0.5, UNEVEN)[-1]))
    [stretch] = offset.stretches
    first, again = (kept_positions(stretch, offset.rule, LOG) for _ in range(2))
    assert np.array_equal(first, again)


def test_it_does_not_matter_which_worker_reads_a_block(selection: Shedder | None) -> None:
    offset = batches(selection, 0.5, [5_000, 90_000])[-1]
    [stretch] = offset.stretches
    middle = 3 * DATA_BLOCK
    parts = [replace(stretch, stop=middle), replace(stretch, start=middle, read=middle)]
    joined = np.concatenate([kept_positions(p, offset.rule, LOG) for p in parts])
    assert np.array_equal(joined, kept_positions(stretch, offset.rule, LOG))


def test_nothing_goes_when_nothing_must(selection: Shedder | None) -> None:
    chain = batches(selection, 1.0, UNEVEN)
    assert chain[-1].totals.shed == 0


@pytest.mark.parametrize("name", [name for name, found in SELECTIONS.items() if found])
def test_weights_are_at_least_one_and_one_for_each_kept_row(name: str) -> None:
    """A uniform batch has one weight for all, offered over kept: a slice carries it."""
    offset = batches(SELECTIONS[name], 0.4, [60_000])[-1]
    for span in spans(offset.stretches[0]):
        kept = keep(read_block(LOG, span), span, offset.rule)
        assert len(kept.weights) == kept.mask.sum()
        assert (kept.weights >= 1.0 - 1e-12).all()


def test_the_watermark_never_runs_ahead_of_the_offered_tuples(selection: Shedder | None) -> None:
    """Spark's watermark follows the largest event time that it has seen. A subset's is no larger,
    batch by batch, so no tuple becomes late that would have been on time without shedding."""
    events = LOG.table["event_time"].cast(pa.int64()).to_numpy()
    seen = offered = 0
    for offset in batches(selection, 0.3, UNEVEN)[1:]:
        [stretch] = offset.stretches
        positions = kept_positions(stretch, offset.rule, LOG)
        seen = max([seen, *events[positions]])
        offered = max(offered, int(events[stretch.start : stretch.stop].max()))
        assert seen <= offered


def test_the_gates_of_a_join_keep_the_same_keys_when_one_of_them_leads() -> None:
    selection = SELECTIONS["key"]
    assert selection is not None
    leader = batches(selection, 0.4, [50_000])[-1]
    assert leader.rule.selection is not None
    start, stretch = leader.stretches[0].stop, leader.stretches[0]
    beside = replace(stretch, start=start, read=start, stop=start + 30_000)
    previous = replace(leader, rule=Rule(), seq=0)
    planned = replace(leader, stretches=(beside,), rule=Rule(keep_ppm=400_000, seed=5))
    follower = selected(
        planned, previous, selection, LOG, limit_ppm=leader.rule.selection.whole_keys.limit_ppm
    )
    fates: dict[tuple[int, int], set[bool]] = {}
    for offset in (leader, follower):
        [taken] = offset.stretches
        kept = set(kept_positions(taken, offset.rule, LOG).tolist())
        rows = LOG.table.slice(taken.start, taken.tuples)
        epochs = rows["event_time"].cast(pa.int64()).to_numpy() // (5 * SECOND_US)
        for i, found in enumerate(zip(rows["key"].to_pylist(), epochs.tolist(), strict=True)):
            fates.setdefault(found, set()).add(taken.start + i in kept)
    assert all(len(fate) == 1 for fate in fates.values())
    assert {fate.copy().pop() for fate in fates.values()} == {True, False}


def test_without_data_dependence_counts_follow_from_positions_alone() -> None:
    rule = Rule(keep_ppm=PPM // 3, selection=SELECTIONS["strata"])
    whole = Stretch(partition=0, start=0, read=0, stop=100_000)
    parts = [replace(whole, stop=777), replace(whole, start=777, read=777)]
    assert sum(p.kept_tuples(rule) for p in parts) == whole.kept_tuples(rule)
