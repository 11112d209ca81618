"""The networks of `fit-live`: queries whose cost is waiting, on nodes of one task slot each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WAITS = "reflect('java.lang.Thread', 'sleep', {ms}L) IS NOT NULL"  # per tuple, in its task
DELAY = "8s"


@dataclass(frozen=True, kw_only=True)
class LiveQuery:
    name: str
    node: str
    cost_ms: int
    reads: str | None = None  # the query whose results it reads; None: a stream from outside
    rate: float = 1.0  # of its stream from outside, over that of the others


@dataclass(frozen=True, kw_only=True)
class LiveNetwork:
    """`full_per_s`, times their `rate`, of the streams from outside fills the first node."""

    name: str
    nodes: int
    queries: tuple[LiveQuery, ...]
    full_per_s: float

    @property
    def roots(self) -> tuple[LiveQuery, ...]:
        return tuple(query for query in self.queries if query.reads is None)

    @property
    def outputs(self) -> tuple[str, ...]:
        read = {query.reads for query in self.queries}
        return tuple(query.name for query in self.queries if query.name not in read)


# Figure 1: A costs 1 and 2, B costs 3 and 1, in units of 4 ms; stream 1 brings twice as much.
PAPER = LiveNetwork(
    name="paper",
    nodes=2,
    queries=(
        LiveQuery(name="b1", node="node-1", cost_ms=12, reads="a1"),
        LiveQuery(name="b2", node="node-1", cost_ms=4, reads="a2"),
        LiveQuery(name="a1", node="node-2", cost_ms=4, rate=2.0),
        LiveQuery(name="a2", node="node-2", cost_ms=8),
    ),
    full_per_s=1000.0 / 16.0,
)
# A sends to B and C, B to D and E; what leads to D is worth little, because D is slow.
TREE = LiveNetwork(
    name="tree",
    nodes=5,
    queries=(
        LiveQuery(name="d1", node="node-1", cost_ms=20, reads="b1"),
        LiveQuery(name="e1", node="node-2", cost_ms=2, reads="b2"),
        LiveQuery(name="c1", node="node-3", cost_ms=3, reads="a3"),
        LiveQuery(name="b1", node="node-4", cost_ms=2, reads="a1"),
        LiveQuery(name="b2", node="node-4", cost_ms=2, reads="a2"),
        LiveQuery(name="a1", node="node-5", cost_ms=2, rate=2.0),
        LiveQuery(name="a2", node="node-5", cost_ms=2),
        LiveQuery(name="a3", node="node-5", cost_ms=2),
    ),
    full_per_s=1000.0 / 8.0,
)


def flow_of(network: LiveNetwork, root: Path, profile: Sequence[tuple[float, float]]) -> Any:
    """A cluster file with the first query; `profile` is (second, load) of the first node."""
    first = network.queries[0]
    return {
        "streams": {
            **{
                f"to_{query.name}": {
                    "source": "synthetic",
                    "options": {
                        "rate": _steps(profile, query.rate * network.full_per_s),
                        "columns": "id position",
                    },
                }
                for query in network.roots
            },
            **{
                f"from_{query.reads}": {
                    "source": "files",
                    "options": {"path": str(root / query.reads), "startingOffsets": "earliest"},
                    "columns": {"id": "BIGINT"},
                }
                for query in network.queries
                if query.reads is not None
            },
        },
        "classes": {"default": {"delay": DELAY}},
        "queries": {first.name: body_of(first, root)},
        "cluster": {
            "folder": str(root / "run"),
            "fewest": network.nodes,
            "most": network.nodes,
            "lease": "20s",
            "upper": 1000.0,  # nothing is to move
            "target": 999.0,
            "lower": 1e-9,
        },
        "spark": {"config": {"spark.driver.memory": "600m"}},
    }


def _steps(profile: Sequence[tuple[float, float]], full_per_s: float) -> str:
    return ",".join(f"{at_s:g}:{load * full_per_s:g}" for at_s, load in profile)


def body_of(query: LiveQuery, root: Path) -> Mapping[str, Any]:
    stream = f"to_{query.name}" if query.reads is None else f"from_{query.reads}"
    return {
        "sql": f"SELECT id FROM {stream} WHERE {WAITS.format(ms=query.cost_ms)}",
        "sink": {"type": "parquet", "path": str(root / query.name)},
    }
