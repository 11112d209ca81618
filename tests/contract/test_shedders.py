"""One suite over every shedder: pure, exact, loyal to the decision, the same however it is cut.

It runs over the registry, each shedder as the examples of its options make it, and holds each one
to what it promises.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.flow.flow import Stream
from spillway.gate.arrivals import Arrivals
from spillway.gate.ledger import audit
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut
from spillway.gate.planning import Settings, Waiting, next_offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.gate.shedders import catalog
from spillway.gate.shedders.blocks import DATA_BLOCK, keep, kept_positions, read_block, spans
from spillway.gate.shedders.planned import selected
from spillway.gate.shedders.shedder import Shedder
from spillway.logs.stream_options import own_options
from spillway.ports import ArrivalCurve, Span

ROWS = 12 * DATA_BLOCK
ROW_US = 1_000


def options_of(name: str) -> dict[str, str]:
    """What makes the shedder, after its own examples."""
    known = catalog.SHEDDERS[name].options if name in catalog.SHEDDERS else ()
    return {"shedder": name, **{option.name: option.example for option in known}}


EVERY = {name: catalog.asked_shedder(options_of(name), "at") for name in catalog.names()}


def each(promises: Callable[[Shedder], object]) -> pytest.MarkDecorator:
    """The shedders that look at the data and promise this."""
    found = {name: one for name, one in EVERY.items() if one is not None and promises(one)}
    return pytest.mark.parametrize("shedder", found.values(), ids=found)


class ArrayLog:
    """Trades that are held in memory: 1,000 a second, skewed symbols, times a little late."""

    def __init__(self, only: Sequence[str] = ()) -> None:
        rng = np.random.default_rng(3)
        arrival_us = 1_000_000_000_000 + np.arange(ROWS) * ROW_US
        late_us = rng.integers(0, 2_000_000, ROWS)
        self.table = pa.table(
            {
                "symbol": np.minimum(rng.zipf(1.4, ROWS), 300),
                "price": np.round(rng.random(ROWS), 3),
                "volume": rng.integers(1, 3, ROWS),
                "at": pa.array(arrival_us - late_us, pa.timestamp("us", tz="UTC")),
                "_arrival": pa.array(arrival_us, pa.timestamp("us", tz="UTC")),
            }
        )
        self.table = self.table.select(only or self.table.column_names)

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
    shedder: Shedder | None,
    fraction: float,
    sizes: list[int],
    *,
    seed: int = 5,
    log: ArrayLog = LOG,
) -> list[Offset]:
    """A run of the planner's pure part: batches of these sizes, each with the same decision."""
    start = Stretch(partition=0, start=0, read=0, stop=0)
    chain = [Offset(gate="g", began_us=1, seq=0, planned_us=1, stretches=(start,))]
    for size in sizes:
        previous = chain[-1]
        begin = previous.stretches[0].stop
        stretch = Stretch(partition=0, start=begin, read=begin, stop=begin + size)
        curve = ArrivalCurve(
            positions=np.array([begin, begin + size]), times_s=np.array([begin, begin + size]) / 1e3
        )
        span = Span(partition=0, start=begin, stop=begin + size)
        waiting = Waiting(
            stretches=(stretch,), arrivals=Arrivals.pool([(span, curve)]), lost_tuples=0
        )
        cut = Cut(reach_tuples=size, skip_tuples=0, fraction=fraction, reason="test")
        planned = next_offset(previous, waiting, cut, Settings(seed=seed), now_s=1.0, prices=None)
        if shedder is not None:
            planned = selected(planned, previous, shedder, log)
        chain.append(planned)
    return chain


@pytest.fixture(params=EVERY)
def shedder(request: pytest.FixtureRequest) -> Shedder | None:
    return EVERY[request.param]


UNEVEN = [7_001, 20_000, 1, 16_384, 40_003, 333, 50_000, 30_000]


def test_the_account_is_exact_whatever_the_data(shedder: Shedder | None) -> None:
    chain = batches(shedder, 0.37, UNEVEN)
    assert audit(chain).problems == ()
    for offset in chain:
        found = sum(len(kept_positions(s, offset.rule, LOG)) for s in offset.stretches)
        assert found == offset.kept_tuples()


@pytest.mark.parametrize("fraction", [0.8, 0.5, 0.13])
def test_the_load_that_is_shed_is_the_load_that_was_decided(
    shedder: Shedder | None, fraction: float
) -> None:
    chain = batches(shedder, fraction, [8_000] * 24)
    totals = chain[-1].totals
    kept = totals.admitted / (totals.admitted + totals.shed)
    assert abs(kept - fraction) <= _slack_tuples(shedder) / (24 * 8_000)


def _slack_tuples(shedder: Shedder | None) -> float:
    """What cannot be split is owed: at most a batch, or two windows, of everything is missing."""
    if shedder is None or shedder.kept_tuples is None:
        return 24
    whole = shedder.whole_windows
    return 8_000 if whole is None else 2 * whole.length_us / ROW_US


def test_an_offset_survives_its_encoding(shedder: Shedder | None) -> None:
    for offset in batches(shedder, 0.5, [10_000, 10_000]):
        assert decode(json.loads(json.dumps(encode(offset)))) == offset


def test_a_replay_keeps_the_same_tuples(shedder: Shedder | None) -> None:
    offset = decode(encode(batches(shedder, 0.5, UNEVEN)[-1]))
    [stretch] = offset.stretches
    first, again = (kept_positions(stretch, offset.rule, LOG) for _ in range(2))
    assert np.array_equal(first, again)


def test_it_does_not_matter_which_worker_reads_a_block(shedder: Shedder | None) -> None:
    offset = batches(shedder, 0.5, [5_000, 90_000])[-1]
    [stretch] = offset.stretches
    middle = 3 * DATA_BLOCK
    parts = [replace(stretch, stop=middle), replace(stretch, start=middle, read=middle)]
    joined = np.concatenate([kept_positions(p, offset.rule, LOG) for p in parts])
    assert np.array_equal(joined, kept_positions(stretch, offset.rule, LOG))


def test_nothing_goes_when_nothing_must(shedder: Shedder | None) -> None:
    chain = batches(shedder, 1.0, UNEVEN)
    assert chain[-1].totals.shed == 0


@each(lambda shedder: True)
def test_weights_are_at_least_one_and_one_for_each_kept_row(shedder: Shedder) -> None:
    """A uniform batch has one weight for all, offered over kept: a slice carries it."""
    offset = batches(shedder, 0.4, [60_000])[-1]
    for span in spans(offset.stretches[0]):
        kept = keep(read_block(LOG, span), span, offset.rule)
        assert len(kept.weights) == kept.mask.sum()
        assert (kept.weights >= 1.0 - 1e-12).all()


def test_the_watermark_never_runs_ahead_of_the_offered_tuples(shedder: Shedder | None) -> None:
    """Spark's watermark follows the largest event time that it has seen. A subset's is no larger,
    batch by batch, so no tuple becomes late that would have been on time without shedding."""
    events = LOG.table["at"].cast(pa.int64()).to_numpy()
    seen = offered = 0
    for offset in batches(shedder, 0.3, UNEVEN)[1:]:
        [stretch] = offset.stretches
        positions = kept_positions(stretch, offset.rule, LOG)
        seen = max([seen, *events[positions]])
        offered = max(offered, int(events[stretch.start : stretch.stop].max()))
        assert seen <= offered


@each(lambda shedder: True)
def test_the_columns_that_it_names_are_all_that_it_looks_at(shedder: Shedder) -> None:
    narrow = ArrayLog(only=[*shedder.columns, "_arrival"])
    for offset, again in zip(
        batches(shedder, 0.4, UNEVEN), batches(shedder, 0.4, UNEVEN, log=narrow), strict=True
    ):
        assert offset == again
        [stretch] = offset.stretches
        found = kept_positions(stretch, offset.rule, narrow)
        assert np.array_equal(found, kept_positions(stretch, offset.rule, LOG))


def _next(shedder: Shedder, previous: Offset) -> Offset:
    [stretch] = previous.stretches
    begin = stretch.stop
    beyond = replace(stretch, start=begin, read=begin, stop=begin + 20_000)
    rule = Rule(keep_ppm=400_000, seed=5)
    return selected(replace(previous, stretches=(beyond,), rule=rule), previous, shedder, LOG)


@each(lambda shedder: True)
def test_a_batch_without_tuples_keeps_none_and_goes_on_from_there(shedder: Shedder) -> None:
    offset = batches(shedder, 0.4, [20_000])[-1]
    assert offset.rule.selection is not None
    rested = offset.rule.selection.at_rest()
    idle = replace(offset, stretches=offset.at_rest(), rule=replace(offset.rule, selection=rested))
    assert idle.kept_tuples() == 0
    after, again = (_next(shedder, before) for before in (offset, idle))
    assert after.rule == again.rule


@pytest.mark.parametrize("name", EVERY)
def test_gates_and_flow_files_take_its_options(name: str) -> None:
    """If a stream does not know an option of a new shedder: `Stream` in flow/flow.py."""
    options = options_of(name)
    own_options({"source": "synthetic", **options})
    assert GateOptions.parse({"heartbeat": "at", **options}).selection == EVERY[name]
    stream = Stream.model_validate({"source": "synthetic", "event_time": "at", **options})
    assert stream.shedder == name


@each(lambda shedder: not shedder.no_sample)
def test_what_calls_itself_a_sample_is_unbiased(shedder: Shedder) -> None:
    symbols = LOG.table["symbol"].to_numpy()[:20_000]
    found = np.zeros(301)
    for seed in range(60):
        offset = batches(shedder, 0.3, [20_000], seed=seed)[-1]
        for span in spans(offset.stretches[0]):
            kept = keep(read_block(LOG, span), span, offset.rule)
            here = symbols[span.start : span.stop][kept.mask]
            found += np.bincount(here, weights=kept.weights, minlength=301)
    truth = np.bincount(symbols, minlength=301)
    assert found[1:6] / 60 == pytest.approx(truth[1:6], rel=0.05)
    assert found.sum() / 60 == pytest.approx(20_000, rel=0.02)


@each(lambda shedder: shedder.kept_tuples is None)
def test_what_is_not_counted_follows_from_positions_alone(shedder: Shedder) -> None:
    rule = Rule(keep_ppm=PPM // 3, selection=shedder)
    whole = Stretch(partition=0, start=0, read=0, stop=100_000)
    parts = [replace(whole, stop=777), replace(whole, start=777, read=777)]
    assert sum(p.kept_tuples(rule) for p in parts) == whole.kept_tuples(rule)


@each(lambda shedder: shedder.whole_keys)
def test_gates_of_a_join_keep_the_same_whole_keys_when_one_of_them_leads(shedder: Shedder) -> None:
    assert shedder.no_sample, "the tuples of a key share one fate"
    leader = batches(shedder, 0.4, [50_000])[-1]
    assert leader.rule.selection is not None
    keys = leader.rule.selection.whole_keys
    assert keys is not None
    start, stretch = leader.stretches[0].stop, leader.stretches[0]
    beside = replace(stretch, start=start, read=start, stop=start + 30_000)
    previous = replace(leader, rule=Rule(), seq=0)
    planned = replace(leader, stretches=(beside,), rule=Rule(keep_ppm=400_000, seed=5))
    follower = selected(planned, previous, shedder, LOG, limit_ppm=keys.limit_ppm)
    fates: dict[tuple[int, int], set[bool]] = {}
    for offset in (leader, follower):
        [taken] = offset.stretches
        kept = set(kept_positions(taken, offset.rule, LOG).tolist())
        rows = LOG.table.slice(taken.start, taken.tuples)
        epochs = rows[keys.time_column].cast(pa.int64()).to_numpy() // keys.epoch_us
        for i, found in enumerate(zip(rows[keys.column].to_pylist(), epochs.tolist(), strict=True)):
            fates.setdefault(found, set()).add(taken.start + i in kept)
    assert all(len(fate) == 1 for fate in fates.values())
    assert {fate.copy().pop() for fate in fates.values()} == {True, False}


@each(lambda shedder: shedder.whole_windows)
def test_whole_windows_stay_or_go_over_all_batches(shedder: Shedder) -> None:
    whole, chain = shedder.whole_windows, batches(shedder, 0.4, UNEVEN)
    assert whole is not None
    found = [kept_positions(s, offset.rule, LOG) for offset in chain for s in offset.stretches]
    windows = LOG.table[whole.column].cast(pa.int64()).to_numpy() // whole.length_us
    windows = windows[: chain[-1].stretches[0].stop]
    stayed = np.zeros(len(windows), dtype=bool)
    stayed[np.concatenate(found)] = True
    assert set(windows[stayed]).isdisjoint(windows[~stayed])
    assert 0 < stayed.sum() < len(windows)
    assert GateOptions.parse({"heartbeat": "at", **options_of(shedder.name)}).min_keep > 0.0
