"""A cluster that can be watched without Spark: a real control log and a real coordinator, and nodes
that report what they are told to."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "hosts" / "cluster"))

from toys import CLUSTER, ToyNode

from spillway.check.flow_file import load_flow
from spillway.hosts.cluster.asking import ask
from spillway.hosts.cluster.coordinating import Coordinating
from spillway.hosts.cluster.messages import Request, Seen
from spillway.hosts.cluster.opening import place_of
from spillway.watch.cluster import ClusterWatch
from spillway.watch.views import Snapshot

LEASE_S = 120.0  # nothing is lost here, however busy the machine is
WAIT_S = 120.0
FILE = """\
streams:
  clicks: {source: synthetic, options: {rate: 10}}
  found:
    source: kafka
    options: {topic: found, kafka.bootstrap.servers: "127.0.0.1:9"}
    columns: {key: string}
classes:
  gold: {delay: 1s, priority: 3}
  low: {delay: 10s}
queries:
  finds:
    class: gold
    sink: {type: kafka, brokers: "127.0.0.1:9", topic: found}
    sql: SELECT key AS value FROM clicks
  keeps: {class: gold, sink: {type: noop}, sql: SELECT key FROM found}
  counts: {class: low, sink: {type: noop}, sql: SELECT key FROM clicks}
cluster:
  folder: FOLDER
  launcher: none
  fewest: 2
  period: 1s
  lease: 120s
"""
RATES = {"finds": 4000.0, "keeps": 900.0, "counts": 250.0}
CLASSES = {"finds": "gold", "keeps": "gold", "counts": "low"}
PAGE = "http://127.0.0.1:1/"


class WatchedCluster:
    """Everything happens in its threads until `close`."""

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        file = folder / f"{CLUSTER}.yaml"  # what the nodes say they belong to
        file.write_text(FILE.replace("FOLDER", str(folder / "run")))
        self.place = place_of(file, load_flow(file))
        self.coordinating = Coordinating(self.place, lambda said: None)
        self.watch = ClusterWatch(self.place)
        self.coordinating.listeners.append(self.watch.entry)
        self.nodes = [self.node(f"node-{number}") for number in range(1, nodes + 1)]
        self.stuck: set[str] = set()  # nodes that report and carry nothing out
        self._stop, self._ends = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self.coordinating.run, args=(self._stop, self._ends)),
            threading.Thread(target=self._beat),
        ]
        for thread in self._threads:
            thread.start()

    def node(self, name: str) -> ToyNode:
        made = ToyNode(name, self.place.reports(), self.place.assignments(), LEASE_S)
        made.cores = {"finds": 0.55, "keeps": 0.2, "counts": 0.12}
        made.class_of, made.rates, made.watch = CLASSES, RATES, PAGE
        return made

    def _beat(self) -> None:
        while not self._stop.wait(0.2):
            for node in self.nodes:
                for query in RATES.keys() & node.busy.keys():
                    node.seen[query] = _more(node.seen.get(query, Seen()), RATES[query] / 5)
                node.beat(time.monotonic())
                if node.name not in self.stuck:
                    node.carry_out(time.monotonic())

    def until(self, holds: Callable[[Snapshot], bool]) -> Snapshot:
        deadline_s = time.monotonic() + WAIT_S
        while not holds(now := self.watch.look()):
            assert time.monotonic() < deadline_s, now
            time.sleep(0.2)
        return now

    def placed(self) -> Snapshot:
        """All queries have a node, and have been counted for a while."""
        return self.until(
            lambda now: (
                len(now.queries) == len(RATES)
                and all(query.pace.offered_per_s > 0.0 for query in now.queries)
            )
        )

    def move(self, query: str, node: str) -> str:
        return ask(
            self.place, Request(kind="move", name=query, value=node, stops_first=True), WAIT_S
        )

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def _more(seen: Seen, tuples: float) -> Seen:
    return replace(
        seen,
        admitted_tuples=seen.admitted_tuples + int(0.9 * tuples),
        shed_tuples=seen.shed_tuples + int(0.1 * tuples),
        waiting_tuples=40,
        waiting_s=0.4,
        delay_s=0.8,
        batch_s=0.5,
        fixed_s=0.2,
        reason="what fits in 1 s",
    )
