from dataclasses import replace
from pathlib import Path

import numpy as np

from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule
from spillway.hosts.spark.driver.conditions import Losses, LossWatch
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.logs.dead_letters import DeadLetters

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
    letters = DeadLetters(directory=str(tmp_path / "letters"))
    letters.record(0, np.array([4, 5]), lost=np.array([9]))
    [(_, found)] = watch.changed(progress(lost=7))
    assert found == Losses(malformed_tuples=2, dropped_tuples=7, vanished_tuples=1)
