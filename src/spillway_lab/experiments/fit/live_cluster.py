"""A real cluster for one network: a coordinator and nodes as processes, asked and watched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from spillway.check.flow_file import load_as_written
from spillway.cluster.fit.measured import Network, QueryCost
from spillway.coding import from_json
from spillway.errors import SpillwayError
from spillway.hosts.cluster.asking import ask
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.messages import NODE, NodeReport, Request
from spillway.hosts.cluster.node_folder import ledgers_of
from spillway.hosts.cluster.opening import place_of
from spillway.hosts.cluster.records import encoded
from spillway.hosts.cluster.status import Status
from spillway.hosts.cluster.table_records import TABLE
from spillway.hosts.spark.files import read_ledger
from spillway.logs.sink_index import SinkIndex
from spillway_lab.experiments.fit.live_networks import LiveNetwork, body_of, flow_of

START_S = 420.0  # five nodes on two busy cores
_SPILLWAY = [sys.executable, "-m", "spillway.cli.app"]


class LiveCluster:
    """Everything that it started is gone when it is closed."""

    def __init__(
        self, network: LiveNetwork, root: Path, profile: Sequence[tuple[float, float]]
    ) -> None:
        self._network, self._root = network, root
        self._file = root / f"{network.name}.yaml"
        self._file.write_text(yaml.safe_dump(flow_of(network, root, profile)))
        self._place = place_of(self._file, load_as_written(self._file))
        self._reports = Latest(self._place.reports())
        self._status = Status(self._place)
        with (root / "coordinator.log").open("wb") as log:
            command = [*_SPILLWAY, "cluster", "run", str(self._file)]
            self._coordinator = subprocess.Popen(command, stdout=log, stderr=log)

    def close(self) -> None:
        """A node is the leader of its process group: Spark and its workers go with it."""
        self._coordinator.kill()
        self._coordinator.wait()
        listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            if str(self._file) in command.split():
                with suppress(ProcessLookupError):
                    os.killpg(int(pid), signal.SIGKILL)

    def begin(self) -> float:
        """All queries where they belong; when the streams from outside began (epoch)."""
        self._await(self._nodes_run, "not all nodes have come")
        inner = [query for query in self._network.queries if query.reads is not None]
        for query in inner[1:]:
            self._add(query)
        self._await(lambda: self._run(q.name for q in inner), "not all inner queries run")
        with ThreadPoolExecutor(len(self._network.roots)) as pool:
            list(pool.map(self._add, self._network.roots))
        roots = [query.name for query in self._network.roots]
        self._await(lambda: all(self._began_s(name) for name in roots), "no stream has begun")
        return max(self._began_s(name) or 0.0 for name in roots)

    def use(self, tables: str) -> None:
        ask(self._place, Request(kind="set", name="tables", value=tables), wait_s=60.0)

    def has_tables(self) -> bool:
        return bool(self._tables())

    # -- what is measured

    def delivered_per_s(self, from_s: float, to_s: float) -> float:
        """Rows that the sinks of the outputs committed, between two moments; over all of them."""
        return sum(_rate(self._root / name, from_s, to_s) for name in self._network.outputs)

    def measured(self) -> tuple[Network, dict[str, QueryCost]]:
        """As the nodes report it now."""
        self._reports.read_on()
        reports = {
            name: from_json(NodeReport, placed.record.body or {})
            for name, placed in self._reports.of(NODE).items()
        }
        costs = {cost.query: cost for report in reports.values() for cost in report.costs}
        readers: dict[str, tuple[str, ...]] = {}
        for query in self._network.queries:
            if query.reads is not None:
                readers[query.reads] = (*readers.get(query.reads, ()), query.name)
        network = Network(
            node_of={query.name: query.node for query in self._network.queries},
            slots={n: r.host.capacity.cpu_cores for n, r in reports.items() if r.host is not None},
            readers=readers,
        )
        return network, costs

    def reaction_s(self, from_s: float, to_s: float) -> float | None:
        """From a jump of the rates until the first node dropped what it goes on dropping: its share
        within a tenth of the last one before `to_s`, the slowest of its gates."""
        found = [_settled_s(self._plans(query.name, from_s, to_s)) for query in self._network.roots]
        known = [at_s - from_s for at_s in found if at_s is not None]
        return max(known) if len(known) == len(found) else None

    def table_bytes(self) -> tuple[int, int]:
        """(records of tables that were written so far and are still in the log, their bytes)."""
        lengths = [len(encoded(placed.record)) for placed in self._tables()]
        return len(lengths), sum(lengths)

    # -- looking

    def _tables(self) -> list[Any]:
        entries = self._place.assignments().read(0)
        return [p for p in entries.placed if p.record.key.startswith(TABLE) and p.record.body]

    def _plans(self, name: str, from_s: float, to_s: float) -> list[tuple[float, float]]:
        """(when a batch was planned, the share that it kept)."""
        stream = f"to_{name}"
        return [
            (offset.planned_us / 1e6, offset.kept_tuples() / offset.offered_tuples)
            for path in ledgers_of(self._place.folder, name, stream)
            for offset in read_ledger(path)
            if offset.offered_tuples and from_s <= offset.planned_us / 1e6 < to_s
        ]

    def _began_s(self, name: str) -> float | None:
        for path in ledgers_of(self._place.folder, name, f"to_{name}"):
            for offset in read_ledger(path):
                return offset.began_us / 1e6
        return None

    def _nodes_run(self) -> bool:
        nodes = self._status.now()["nodes"]
        return len(nodes) == self._network.nodes and all(
            node["state"] == "running" for node in nodes.values()
        )

    def _run(self, names: Any) -> bool:
        queries = self._status.now()["queries"]
        return all(queries.get(name, {}).get("state") == "runs" for name in names)

    def _add(self, query: Any) -> None:
        body = body_of(query, self._root)
        ask(
            self._place,
            Request(kind="add", name=query.name, value=query.node, query=body),
            wait_s=60.0,
        )

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + START_S
        while not holds():
            if time.monotonic() > deadline_s:
                logs = "\n".join(log.read_text()[-500:] for log in self._place.logs.glob("*.log"))
                raise SpillwayError(f"{what} within {START_S:g} s: {logs}")
            time.sleep(1.0)


def _rate(folder: Path, from_s: float, to_s: float) -> float:
    """Between the first and the last commit of the time: batches come in lumps."""
    index = SinkIndex(str(folder))
    index.refresh()
    times, rows = [], []
    for file in index.files(0, index.rows):
        times.append(file.written_s)
        rows.append(file.stop)
    if len(times) < 2:
        return 0.0
    first, last = np.interp([from_s, to_s], times, rows)
    return float(last - first) / (to_s - from_s)


def _settled_s(plans: Sequence[tuple[float, float]]) -> float | None:
    if not plans:
        return None
    last = plans[-1][1]
    at_s = plans[-1][0]
    for planned_s, kept in reversed(plans):
        if abs(kept - last) > 0.1 * max(last, 0.05):
            break
        at_s = planned_s
    return at_s
