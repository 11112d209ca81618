"""Jobs that aggregate over windows."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spillway_lab.benchmarks.jobs.job import Expected, Job, as_rows, counted
from spillway_lab.benchmarks.jobs.records import KEYS, Records

WINDOW_S = 5
LATE_S = 2  # the watermark's delay
_LAST_S = 10  # windows that end later may still be open when the job stops

EIGHT = {"spark.sql.shuffle.partitions": "8"}


def windowed(frames: Sequence[DataFrame], slide_s: int = WINDOW_S) -> list[DataFrame]:
    rows = frames[0].withWatermark("event_time", f"{LATE_S} seconds")
    period = F.window("event_time", f"{WINDOW_S} seconds", f"{slide_s} seconds")
    counts = rows.groupBy(period, "key").count()
    return [as_rows(counts, F.unix_micros("window.start"), F.col("key"), F.col("count"))]


def two_queries(frames: Sequence[DataFrame]) -> list[DataFrame]:
    return windowed(frames) + windowed(frames)


def windows(
    streams: Sequence[Records], begun_us: int, slide_s: int = WINDOW_S, *, final: bool = True
) -> Expected:
    """Counts by window and key; `final`: only of those that the watermark has closed."""
    [records] = streams
    ids = np.arange(records.count)
    at_us, slide_us = begun_us + records.due_us(ids), slide_s * 1_000_000
    last_us = at_us // slide_us * slide_us
    starts = [last_us - back * slide_us for back in range(WINDOW_S // slide_s)]
    found = counted(np.concatenate(starts), np.tile(ids % KEYS, len(starts)))
    if not final:
        return Expected(rows=found)
    until = int(at_us[-1]) - (WINDOW_S + LATE_S + _LAST_S) * 1_000_000
    return Expected(rows={name: n for name, n in found.items() if name[0] <= until}, until=until)


def tumbling(name: str, title: str, records: Records, **more: object) -> Job:
    given = {"queries": windowed, "expected": windows, "settings": EIGHT, **more}
    return Job(name=name, title=title, streams=(records,), **given)  # type: ignore[arg-type]


SLOW = Records.even(500.0, 45.0)
BURST = Records(seconds=45.0, steps=((0.0, 2_000.0), (25.0, 80_000.0)))

JOBS = (
    tumbling("window", "tumbling window, append, 2,000 rows/s", Records.even(2_000.0, 35.0)),
    tumbling(
        "window-200",
        "the same with Spark's 200 shuffle partitions",
        Records.even(2_000.0, 35.0),
        settings={},
    ),
    tumbling(
        "restart",
        "stop, 20 s, start, 2,000 rows/s",
        Records.even(2_000.0, 60.0),
        stops=(20.0, 20.0),
    ),
    tumbling(
        "trigger",
        "trigger of 5 s with a delay of 2 s, 500 rows/s",
        SLOW,
        trigger_s=5.0,
        names_trigger=True,
    ),
    tumbling("silent-trigger", "trigger of 5 s that nobody mentioned", SLOW, trigger_s=5.0),
    tumbling(
        "two-queries", "one reader, two queries", Records.even(600.0, 35.0), queries=two_queries
    ),
    tumbling(
        "partitions",
        "new partitions while it runs, 1,000 rows/s",
        Records(seconds=37.0, steps=((0.0, 1_000.0),), grows_at_s=17.0),
    ),
    tumbling("burst", "burst from 2,000 to 80,000 rows/s", BURST),
    tumbling(
        "sliding",
        "sliding windows, 2,000 rows/s",
        Records.even(2_000.0, 35.0),
        queries=partial(windowed, slide_s=1),
        expected=partial(windows, slide_s=1),
    ),
    tumbling(
        "update",
        "update mode into foreachBatch, 2,000 rows/s",
        Records.even(2_000.0, 35.0),
        mode="update",
        expected=partial(windows, final=False),
    ),
)
