"""A batch is cut into as many tasks as its rows are worth; its rows stay the same."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.hosts.spark.worker.rows import Rows
from spillway.hosts.spark.worker.slices import slices
from spillway.model import Prices
from spillway.testing import ToyLog


def batch(tuples: int, kept_s: float | None) -> Offset:
    return Offset(
        gate="g",
        began_us=1,
        seq=3,
        planned_us=2_000_000_000,
        stretches=(Stretch(partition=0, start=700, read=700, stop=700 + tuples),),
        rule=Rule(keep_ppm=PPM // 2, seed=5),
        prices=None if kept_s is None else Prices(fixed_s=0.2, kept_s=kept_s),
    )


@pytest.mark.parametrize(
    ("tuples", "kept_s", "tasks"),
    [
        (1_200, None, 1),  # nothing known: few rows are no work
        (1_200, 1e-6, 1),
        (1_200, 5e-3, 8),  # each waits for an answer
        (60_000, 1e-6, 6),
        (60_000, 5e-3, 8),
    ],
)
def test_dear_rows_are_worth_a_task_sooner(tuples: int, kept_s: float | None, tasks: int) -> None:
    assert len(slices(batch(tuples, kept_s), 8)) == pytest.approx(tasks, abs=1 if tasks > 1 else 0)


def test_the_rows_are_the_same_however_many_tasks_there_are() -> None:
    log, dear = ToyLog(), batch(3_000, 5e-3)
    schema = StructType([*from_arrow_schema(log.columns()).fields])

    def positions(parallelism: int) -> list[int]:
        parts = slices(dear, parallelism)
        found = [b for part in parts for b in Rows(schema).of(part, log)]
        return sorted(pa.Table.from_batches(found)["position"].to_pylist())

    whole = positions(1)
    assert len(whole) == dear.kept_tuples()
    assert len(slices(dear, 8)) == 8
    assert positions(8) == whole
    assert len(np.unique(whole)) == len(whole)
