"""Every example gives, as a stream, the answer that the same SQL gives over all its tuples."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import bounded, load_streams, rows_of, streamed
from pyspark.sql import SparkSession

from spillway.check.flow_file import load_flow
from spillway.flow.flow import Flow
from spillway.templates.instances import template_of

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 26
MOST_PER_S = 2500
CASES = [
    ("planetlab", "total"),
    ("planetlab", "hot"),
    ("packets", "scans"),
    ("packets", "odd"),
    ("packets", "volume"),
    *((f"nexmark_q{n}", f"q{n}") for n in (1, 2, 3, 5, 7, 8, 11, 12)),
]


def rounded(rows: Counter[Any]) -> Counter[Any]:
    """Sums of doubles depend on their order in the last digits."""
    return Counter(
        {
            tuple(round(v, 9) if isinstance(v, float) else v for v in row): count
            for row, count in rows.items()
        }
    )


def small(example: str) -> Flow:
    """The example at a rate that a test can afford; its streams keep their proportions."""
    flow = load_flow(EXAMPLES / f"{example}.yaml")
    rates = {name: float(stream.options["rate"]) for name, stream in flow.streams.items()}
    scale = min(1.0, MOST_PER_S / max(rates.values()))
    for name, stream in flow.streams.items():
        stream.options["rate"] = rates[name] * scale
    tuples = {name: round(SECONDS * rate * scale) for name, rate in rates.items()}
    return bounded(flow, tuples, first_batch="20000")


def is_closed(row: Any, closed_s: float) -> bool:
    return "period" not in row or row["period"]["end"].timestamp() <= closed_s


@pytest.mark.parametrize(("example", "query"), CASES)
def test_an_example_gives_its_batch_answer(
    spark: SparkSession, tmp_path: Path, example: str, query: str
) -> None:
    flow = small(example)
    got = rounded(rows_of(streamed(spark, flow, query, tmp_path)))
    closed_s = min(load_streams(spark, flow).values())
    answer = spark.sql(flow.queries[query].text).collect()
    expected = rounded(Counter(tuple(row) for row in answer if is_closed(row, closed_s)))
    assert got == expected
    assert expected, "the example must have results to compare"


def test_the_market_gives_each_of_its_queries_its_batch_answer(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = small("market")
    together = rounded(rows_of(streamed(spark, flow, "prices", tmp_path)))
    closed_s = load_streams(spark, flow)["ticks"]
    given = template_of("prices", flow.queries["prices"])
    for number in (1, 17, 35):
        answer = spark.sql(given.template.instantiated(given.rows[number - 1])).collect()
        expected = rounded(Counter(tuple(row) for row in answer if is_closed(row, closed_s)))
        assert Counter({r[1:]: c for r, c in together.items() if r[0] == number}) == expected
        assert expected
    assert {row[0] for row in together} == set(range(1, 36))
