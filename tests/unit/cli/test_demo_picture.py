import sys
from pathlib import Path

import numpy as np
import pytest

from spillway.cli import demo
from spillway.gate.offsets import Offset, Totals
from spillway.gate.rules import Stretch
from spillway.hosts.spark.driver.progress import DeliveredBatch


def test_without_matplotlib_the_demo_says_what_its_picture_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "spillway-spark[pictures]" in demo._save_picture([], tmp_path)
    assert not list(tmp_path.iterdir())


def _offset(seq: int, planned_s: float, offered: int, admitted: int) -> Offset:
    return Offset(
        gate="by_key/readings",
        began_us=1_000_000_000,
        seq=seq,
        planned_us=round((1_000.0 + planned_s) * 1e6),
        stretches=(Stretch(partition=0, start=0, read=0, stop=0),),
        totals=Totals(offered=offered, admitted=admitted, shed=0),
    )


def test_what_arrived_is_drawn_when_it_arrived_however_long_batches_take() -> None:
    """A steady 100 rows/s, and batches of one, four and two seconds: no tooth in the curve."""
    planned_s = (0.0, 1.0, 5.0, 7.0)
    found = [_offset(n, s, round(100 * s), round(60 * s)) for n, s in enumerate(planned_s)]
    ends_s, offered, kept = demo.by_arrival(found)
    assert ends_s == [1.0, 5.0, 7.0]
    assert offered == [100.0] * 3
    assert kept == [60.0] * 3


def test_the_picture_shows_both_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    batch = DeliveredBatch(
        gate="by_key/readings",
        seq=1,
        ended_s=1_002.0,
        duration_s=1.0,
        offered_tuples=100,
        kept_tuples=60,
        mean_delay_s=1.5,
        quantile_delays_s=np.array([2.0, 1.0]),
    )
    offsets = [_offset(n, float(n), 100 * n, 100 * n) for n in range(4)]
    runs = [demo.Run(name=n, batches=[batch], offsets=offsets) for n in (demo.PLAIN, demo.GATED)]
    delays, waiting, _ = demo.picture(runs).axes
    for axis in (delays, waiting):
        assert {demo.PLAIN, demo.GATED} <= {line.get_label() for line in axis.lines}
    assert "demo.png" in demo._save_picture(runs, tmp_path)
    assert (tmp_path / "demo.svg").stat().st_size > 0
