from dataclasses import replace
from pathlib import Path

from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.hosts.spark.driver.supervision import Losses, LossWatch
from spillway.logs.dead_letters import DeadLetters, Found, place_of
from spillway.logs.intervals import interval

OFFSET = Offset(
    gate="q/s",
    began_us=1,
    seq=3,
    planned_us=2,
    stretches=(),
    rule=Rule(seed=0, policy="uniform", reason=""),
    pinned={},
)


def progress(lost: int) -> BatchProgress:
    offset = replace(OFFSET, totals=Totals(offered=900, admitted=0, shed=900, lost=lost))
    return BatchProgress(
        query="q",
        run_id="r",
        batch_id=3,
        started_s=0.0,
        duration_s=1.0,
        input_rows=0,
        phases_s={},
        sources=({"endOffset": encode(offset)}, {"endOffset": {"other": {"0": 1}}}),
    )


def test_what_was_lost_is_said_when_it_changes_and_only_then(tmp_path: Path) -> None:
    watch = LossWatch({"q/s": tmp_path / "letters"})
    assert list(watch.changed(progress(lost=0))) == []
    assert list(watch.changed(progress(lost=7))) == [("q/s", Losses(dropped_tuples=7))]
    assert list(watch.changed(progress(lost=7))) == []
    another_life = DeadLetters(directory=place_of(tmp_path / "letters", "q/s", 0))
    another_life.record(0, malformed=Found(positions=interval(0, 50)))
    letters = DeadLetters(directory=place_of(tmp_path / "letters", "q/s", OFFSET.began_us))
    bad, gone = Found(positions=interval(4, 6)), Found(positions=interval(9, 10))
    letters.record(0, malformed=bad, lost=gone)
    [(_, found)] = watch.changed(progress(lost=7))
    assert found == Losses(malformed_tuples=2, dropped_tuples=7, vanished_tuples=1)
