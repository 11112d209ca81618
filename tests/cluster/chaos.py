"""`make chaos-cluster`: kills and freezes in the middle of moves of running queries.

    python tests/cluster/chaos.py folder|kafka ROUNDS [SEED]

Two nodes, two coordinators, a query over windows and one without state. Each round one of them is
to move while it runs, and at some stage of the move a node or the leader is killed or frozen
for longer than its lease, or the broker is killed and comes back; the round ends when all is
settled. With Kafka the rows go into a topic, exactly once. Prints counts as JSON, and exits with 0
only if every row and every window came out once and whole and the audit over all ledgers is exact.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parents[1] / "kafka"))

from broker import Broker
from confluent_kafka import Consumer, TopicPartition
from live import LEASE_S, START_S, Live, settled, signal_tree, tree_of
from two_queries import FOLDER, KEEP_ROWS, QUERIES, differences, environment

FLOW = (
    QUERIES
    + """\
cluster:
  folder: {root}/run
  control: {control}
  fewest: 2
  most: 2
  upper: 20.0  # what moves is moved by the rounds
  handover: 5m
  lease: {lease:g}s
spark:
  config: {{spark.driver.memory: 600m}}
"""
)
ROWS = "rows"  # the topic
STAGES = {"counts": ["follows", "cuts", "takes"], "rows": ["follows", "cuts", "has moved"]}
STAGE_S = 120.0  # until a fault comes, whatever the move is at


class Chaos:
    def __init__(self, live: Live, chance: random.Random, broker: Broker | None) -> None:
        self._live, self._chance, self.broker = live, chance, broker
        self.counts: Counter[str] = Counter()

    def round(self, number: int) -> None:
        live, chance = self._live, self._chance
        before = live.status()["queries"]
        query = chance.choice(sorted(before))
        to = next(node for node in live.status()["nodes"] if node != before[query]["node"])
        live.ask("cluster", "move", query, to, "--cluster", str(live.file))
        state = self._await_stage(query, before[query]["generation"])
        brokers = [] if self.broker is None else ["broker"]
        target = chance.choice(["origin", "destination", "leader", *brokers])
        fault = "killed" if target == "broker" else chance.choice(["killed", "frozen"])
        origin = before[query]["node"]
        if target == "broker":
            self._restart_broker()
        else:
            self._do(fault, {"origin": origin, "destination": to}.get(target))
        self.counts[f"{target} {fault}"] += 1
        self.counts[f"faults while: {state}"] += 1
        took_s = live.await_(_all_well, START_S + 4 * LEASE_S)
        after = live.status()["queries"][query]
        self.counts["moves"] += after["generation"] != before[query]["generation"]
        print(
            f"round {number}: {query} {origin} -> {to}, {target} {fault} at '{state}':"
            f" on {after['node']}, {after['came_by']}; settled after {took_s:.0f} s",
            flush=True,
        )

    def _await_stage(self, query: str, generation: int) -> str:
        """Until the move has come to a stage of it, and perhaps a little longer."""
        wanted, ends_s = self._chance.choice(STAGES[query]), time.monotonic() + STAGE_S
        while time.monotonic() < ends_s:
            now = self._live.status()["queries"][query]
            under_way = (now["next"] or {}).get("state", "stops first")
            state = "has moved" if now["generation"] != generation else str(under_way)
            if state in (wanted, "has moved"):
                time.sleep(self._chance.choice([0.0, 0.0, 0.5, 2.0]))
                return state
            time.sleep(0.05)
        return "is late"

    def _restart_broker(self) -> None:
        assert self.broker is not None
        self.broker.stop()
        time.sleep(self._chance.uniform(0.0, 2.0 * LEASE_S))
        self.broker.start()

    def _do(self, fault: str, node: str | None) -> None:
        """To a node with all of its processes; None: to the leader."""
        live = self._live
        process = psutil.Process(live.leader()) if node is None else live.node(node)
        if fault == "killed":
            own = [process] if node is None else tree_of(process)
            signal_tree(process, signal.SIGKILL) if node else process.kill()
            psutil.wait_procs(own, timeout=10.0)
            if node is None:
                live.coordinator()  # the next stand-by
            time.sleep(1.5 * LEASE_S)  # until then nobody has noticed
            return
        asleep = [process] if node is None else tree_of(process)
        for each in asleep:
            each.suspend()
        time.sleep(2.5 * LEASE_S)
        for each in asleep:
            each.resume()


def rows_in(broker: Broker) -> list[int]:
    """All that a reader of committed records sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "chaos",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(ROWS, 0, 0)])
    found: list[int] = []
    while (message := consumer.poll(30.0)) is not None and message.error() is None:
        found.append(json.loads(message.value() or b"")["id"])
    consumer.close()
    assert message is not None, "the broker does not answer"
    return found


def _all_well(now: dict[str, Any]) -> bool:
    nodes = now["nodes"].values()
    fresh = all(node.get("reported_s_ago", 99.0) < LEASE_S for node in nodes)
    running = all(node["state"] == "running" for node in nodes)
    return len(nodes) == 2 and fresh and running and settled(now)


def main(control: str, rounds: int, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="spillway-chaos-") as folder:
        root = Path(folder)
        os.environ.update(environment(root / "results"))
        broker = Broker(root) if control == "kafka" else None
        log, flow = "{type: folder}", FLOW
        if broker is not None:
            broker.start()
            broker.create_topic(ROWS)
            kafka = f"type: kafka, brokers: '{broker.bootstrap}', topic"
            log = f"{{{kafka}: chaos}}"
            flow = FLOW.replace(KEEP_ROWS, f"{{{{{kafka}: {ROWS}, exactly_once: true}}}}")
        live = Live(root, log, flow)
        try:
            return _run(Chaos(live, random.Random(seed), broker), live, control, rounds)
        finally:
            live.close()
            if broker is not None:
                broker.stop()


def _run(chaos: Chaos, live: Live, control: str, rounds: int) -> int:
    begun_s = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it runs behind a shell
    live.coordinator()
    live.coordinator()
    live.await_(_all_well, START_S)
    done = 0
    with suppress(KeyboardInterrupt):  # Ctrl-C: what has been done counts
        for done in range(1, rounds + 1):
            chaos.round(done)
    live.await_(_all_well, START_S + 4 * LEASE_S)
    time.sleep(5.0)
    live.ask("cluster", "stop", str(live.file), "--wait", "90s")
    audit = json.loads(live.ask("cluster", "audit", str(live.file), "--json"))
    rows = None if chaos.broker is None else rows_in(chaos.broker)
    tuples, wrong = differences(Path(os.environ[FOLDER]), rows)
    said = {
        "control_log": control,
        "rounds": done,
        **dict(sorted(chaos.counts.items())),
        "tuples_compared": tuples,
        "differences": len(wrong),
        "audit_exact": audit["exact"],
        "seconds": round(time.monotonic() - begun_s),
    }
    print(json.dumps(said, indent=1))
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 0 if not wrong and audit["exact"] else 1


if __name__ == "__main__":
    log, *given = sys.argv[1:]
    rounds, seed = map(int, given + ["30", "1"][len(given) :])
    sys.exit(main(log, rounds, seed))
