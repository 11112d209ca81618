"""How long one coordinator takes to decide for many nodes that report through a real broker.

    python tests/cluster/scale.py [NODES] [MINUTES]

The coordinator is a process of its own. The nodes are simulated: each writes real reports into the
control log, five in a lease, and takes up what it is given at once; every third one becomes
overloaded in turn. Prints as JSON how long the coordinator's passes took, those in which it decided
apart, and exits with 0 only if every decision was made within one period and no node was lost.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "kafka"))
sys.path.append(str(Path(__file__).parents[1] / "unit" / "hosts" / "cluster"))

from broker import Broker
from toys import CLUSTER, ToyNode

from spillway.check.flow_file import load_flow
from spillway.hosts.cluster.control_log import ControlLog
from spillway.hosts.cluster.coordinating import Coordinating
from spillway.hosts.cluster.opening import Place, place_of
from spillway.hosts.cluster.records import Entries, Placed, Record

LEASE_S, PERIOD_S = 15.0, 5.0
QUERIES_OF_A_NODE = 3
WRITERS = 8
FLOW = """\
streams:
  ticks: {{source: synthetic, options: {{rate: 10}}}}
classes:
  default: {{delay: 2s}}
queries:
{queries}
cluster:
  folder: {root}/run
  control: {{type: kafka, brokers: '{broker}', topic: scale}}
  launcher: none
  fewest: {nodes}
  most: {nodes}
  lease: {lease:g}s
  period: {period:g}s
  patience: 2
"""
QUERY = "  q{n}: {{sql: SELECT * FROM ticks, sink: {{type: parquet, path: out/q{n}}}}}"


class Shared:
    """The assignments as all simulated nodes read them: fetched once."""

    def __init__(self, log: ControlLog) -> None:
        self._log, self._position = log, 0
        self._placed: list[Placed] = []

    def fetch(self) -> None:
        entries = self._log.read(self._position)
        self._placed = [*([] if entries.whole else self._placed), *entries.placed]
        self._position = entries.next

    def read(self, position: int) -> Entries:
        known, end = self._placed, self._position
        begin = bisect_left(known, position, key=lambda placed: placed.position)
        return Entries(placed=tuple(known[begin:]), next=end)

    def append(self, record: Record, expected: int | None = None) -> int:
        raise NotImplementedError

    def close(self) -> None: ...


class Reporters:
    """Some of the nodes: one thread, one connection."""

    def __init__(self, place: Place, names: list[str], assignments: Shared, seed: int) -> None:
        self._chance, log = random.Random(seed), place.reports()
        self.nodes = [ToyNode(name, log, assignments, LEASE_S) for name in names]
        self.late_s = 0.0  # how far reports fell behind their times, at most

    def run(self, stop: threading.Event) -> None:
        due_s = {node: time.monotonic() + self._chance.uniform(0, 3.0) for node in self.nodes}
        while not stop.is_set():
            node = min(self.nodes, key=due_s.__getitem__)
            if stop.wait(max(0.0, due_s[node] - time.monotonic())):
                return
            self.late_s = max(self.late_s, time.monotonic() - due_s[node])
            node.cores = {q: self._cores(node.name, q) for q in node.busy}
            node.carry_out(time.monotonic())
            node.beat(time.monotonic())
            due_s[node] += LEASE_S / 5

    def _cores(self, name: str, query: str) -> float:
        """What a query wants, by the minute: one in three nodes has too much."""
        minute = int(time.monotonic() / 60.0)
        loaded = (int(name.removeprefix("n")) + minute) % 3 == 0
        return 0.4 if loaded else 0.1


def coordinate(file: Path) -> None:
    """A coordinator, and how long each of its passes took."""
    passes: list[tuple[float, bool]] = []

    class Timed(Coordinating):
        def _lead(self, now_s: float) -> None:
            due, begun_s = now_s >= self._due_s, time.monotonic()
            super()._lead(now_s)
            passes.append((time.monotonic() - begun_s, due))
            text = json.dumps(passes)
            (file.parent / "passes.json").write_text(text)

    place = place_of(file, load_flow(file))
    Timed(place, lambda text: print(text, flush=True)).run(threading.Event(), threading.Event())


def main(nodes: int, minutes: float) -> int:
    with tempfile.TemporaryDirectory(prefix="spillway-scale-") as folder:
        root = Path(folder)
        broker = Broker(root)
        broker.start()
        try:
            return _measured(root, broker, nodes, minutes)
        finally:
            broker.stop()


def _measured(root: Path, broker: Broker, nodes: int, minutes: float) -> int:
    file = root / f"{CLUSTER}.yaml"
    queries = "\n".join(QUERY.format(n=n) for n in range(nodes * QUERIES_OF_A_NODE))
    given = {"queries": queries, "root": root, "broker": broker.bootstrap, "nodes": nodes}
    file.write_text(FLOW.format(**given, lease=LEASE_S, period=PERIOD_S))
    place = place_of(file, load_flow(file))
    stop, shared = threading.Event(), Shared(place.assignments())
    names = [f"n{number}" for number in range(nodes)]
    groups = [Reporters(place, names[n::WRITERS], shared, n) for n in range(WRITERS)]
    with (root / "coordinator.log").open("wb") as log:
        command = [sys.executable, __file__, "coordinate", str(file)]
        leader = subprocess.Popen(command, stdout=log, stderr=log)
    threads = [threading.Thread(target=group.run, args=(stop,)) for group in groups]
    for thread in threads:
        thread.start()
    ends_s = time.monotonic() + 60.0 * minutes
    while time.monotonic() < ends_s and leader.poll() is None:
        shared.fetch()
        time.sleep(0.5)
    stop.set()
    leader.kill()
    leader.wait()
    for thread in threads:
        thread.join()
    lost = (root / "coordinator.log").read_text().count("node gone")
    return _judged(json.loads((root / "passes.json").read_text()), groups, nodes, lost)


def _judged(
    passes: list[tuple[float, bool]], groups: list[Reporters], nodes: int, lost: int
) -> int:
    decided = [took_s for took_s, due in passes if due]
    placed = sum(len(node.busy) for group in groups for node in group.nodes)
    said = {
        "nodes": nodes,
        "queries": nodes * QUERIES_OF_A_NODE,
        "queries_that_run": placed,
        "decisions": len(decided),
        "decision_s_median": round(sorted(decided)[len(decided) // 2], 3),
        "decision_s_longest": round(max(decided), 3),
        "other_pass_s_longest": round(max(took_s for took_s, due in passes if not due), 3),
        "report_late_s_longest": round(max(group.late_s for group in groups), 3),
        "nodes_lost": lost,
        "period_s": PERIOD_S,
    }
    print(json.dumps(said, indent=1))
    return 0 if max(decided) <= PERIOD_S and lost == 0 and placed == said["queries"] else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["coordinate"]:
        coordinate(Path(sys.argv[2]))
    else:
        words = sys.argv[1:]
        sys.exit(main(int(words[0]) if words else 500, float(words[1]) if words[1:] else 4.0))
