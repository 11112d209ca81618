"""A clock set back by half an hour in a gate that runs near its target."""

from spillway.clock import ManualClock
from spillway.gate.plausible import Plausible, Seen
from spillway.model import BatchRecord


def test_batches_of_a_time_that_has_not_come_yet_say_nothing() -> None:
    clock, seen = ManualClock(100_000.0), Seen()
    for number in range(60):
        if number == 40:
            clock.advance(-1_500.0)
        kept = (500, 1_000, 2_000)[number % 3]
        took_s = 0.2 + 1e-4 * kept
        clock.advance(took_s)
        record = BatchRecord(
            kept_tuples=kept, scanned_tuples=kept, duration_s=took_s, ended_s=clock.now_s()
        )
        seen.add(record)
        if len(seen) >= 6:
            assert 0.0 < Plausible.of(seen).least_s(1_000) < 0.35
