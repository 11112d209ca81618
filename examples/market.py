"""The flow of market.yaml in Python, with results in a function of our own.

python examples/market.py
"""

import pyarrow as pa

from spillway.api import Flow

SECTORS = range(12)


def show(rows: pa.Table, batch_id: int) -> None:
    """Called with the rows of every batch."""
    if rows.num_rows:
        print(
            f"batch {batch_id}: {rows.num_rows} prices of {len(rows['query_id'].unique())} queries"
        )


def main() -> None:
    flow = Flow("market_py")
    flow.stream(
        "ticks",
        source="synthetic",
        options={
            "rate": 10000,
            "columns": "company key(1357, 0.8), price double(5, 500), event_time time",
        },
        event_time="event_time",
        watermark="2s",
    )
    flow.service_class("traders", delay="p95 3s")
    flow.query(
        "prices",
        class_="traders",
        template="""
            SELECT window(event_time, :size) AS period, company, avg(price) AS mean
            FROM ticks WHERE company % 12 = :sector GROUP BY window(event_time, :size), company
        """,
        instances=[{"sector": sector, "size": "10 seconds"} for sector in SECTORS],
        sink={"type": "python", "call": "market:show"},
    )
    flow.run(duration="30s")


if __name__ == "__main__":
    main()
