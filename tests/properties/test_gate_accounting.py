"""Whatever the log and the bounds do, every tuple is accounted for exactly once."""

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.gate.ledger import audit
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.pacing import Pace, cut, freshest
from spillway.gate.planning import Settings, next_offset, survey
from spillway.gate.rules import Stretch
from spillway.ports import ArrivalCurve, Span

Step = tuple[list[int], int, float, float, bool, int]

steps = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5000), min_size=3, max_size=3),  # new tuples by partition
        st.integers(0, 300),  # tuples that the log drops at its old end
        st.floats(0.0, 1.2),  # wanted share
        st.floats(0.0, 1.0),  # least share
        st.booleans(),  # freshest first
        st.integers(1, 20_000),  # largest batch
    ),
    min_size=1,
    max_size=12,
)


def curve_of(span: Span, now_s: float, jump: bool) -> ArrivalCurve:
    """Evenly spread over a second, or all at one moment."""
    first_s = now_s if jump else now_s - 1.0
    return ArrivalCurve(
        positions=np.array([span.start, span.stop]), times_s=np.array([first_s, now_s])
    )


@settings(max_examples=150, deadline=None)
@given(steps=steps, jump=st.booleans(), dry_run=st.booleans(), partitions=st.integers(1, 3))
def test_every_tuple_is_in_one_batch_and_counted(
    steps: list[Step], jump: bool, dry_run: bool, partitions: int
) -> None:
    ends, first = [0] * partitions, 0
    empty = tuple(Stretch(partition=p, start=0, read=0, stop=0) for p in range(partitions))
    chain = [Offset(gate="g", began_us=0, seq=0, planned_us=0, stretches=empty)]
    for number, (new, dropped, share, least, fresh, largest) in enumerate(steps):
        now_s = 10.0 + number
        ends = [end + more for end, more in zip(ends, new, strict=False)]
        first = min([first + dropped, *ends])
        extent = [Span(partition=p, start=first, stop=end) for p, end in enumerate(ends)]
        waiting = survey(chain[-1], extent, partial(curve_of, now_s=now_s, jump=jump))
        pace = Pace(kept_tuples=largest, scanned_tuples=3 * largest)
        tuples = waiting.arrivals.tuples
        bounded = cut(share * tuples, least, tuples, pace, "test")
        offset = next_offset(
            chain[-1],
            waiting,
            freshest(bounded) if fresh and least == 0.0 else bounded,
            Settings(seed=number, dry_run=dry_run),
            now_s=now_s,
            prices=None,
        )
        assert decode(encode(offset)) == offset
        assert offset.totals.offered == sum(ends)
        chain.append(offset)
    result = audit(chain)
    assert result.problems == ()
    fates = [fates_of(chain, partition, end) for partition, end in enumerate(ends)]
    totals = result.totals
    assert totals.offered == sum(ends)
    assert totals.admitted == sum(fate[KEPT] for fate in fates)
    assert totals.shed == sum(fate[DROPPED] for fate in fates)
    assert totals.pending == sum(fate[WAITS] for fate in fates)


WAITS, KEPT, DROPPED = range(3)


def fates_of(chain: list[Offset], partition: int, end: int) -> list[int]:
    """How many of a partition's tuples wait, were kept and were dropped: tuple by tuple."""
    fate = np.full(end, WAITS)
    for offset in chain:
        stretch = offset.stretches[partition]
        assert (fate[stretch.start : stretch.stop] == WAITS).all(), "a tuple is in two batches"
        fate[stretch.start : stretch.stop] = DROPPED
        fate[stretch.kept_positions(offset.rule)] = KEPT
    counts: list[int] = np.bincount(fate, minlength=3).tolist()
    return counts
