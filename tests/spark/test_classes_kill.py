"""SIGKILL of a whole flow: three classes, one of them overloaded, each query exact afterwards."""

import random
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from drivers import in_flight, kill_tree, offsets, wait_for_offset
from gates import Place
from tally import count, kills

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.timeout(3600)]

KILLS = kills("classes", otherwise=1)
RATES = {"gold": 5_000, "silver": 5_000, "bronze": 400_000}
FLOW = """\
classes:
  gold: {priority: 6, delay: 2s}
  silver: {priority: 3, delay: 2s}
  bronze: {priority: 1, delay: 1s, manager: {law: fixed, keep_fraction: 0.3}}
control: {warm_up: 0s}
"""


@dataclass(frozen=True, kw_only=True)
class Queried(Place):
    """A query of the flow: its root is the run's folder."""

    name: str

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoints" / self.name

    @property
    def sink(self) -> Path:
        return self.root / "sinks" / self.name

    @property
    def ledger(self) -> Path:
        return self.root / "ledgers" / f"{self.name}.{self.name}_rows.jsonl"


def written(folder: Path) -> Path:
    streams = "".join(
        f"  {name}_rows: {{source: synthetic, options: {{rate: {rate}}}}}\n"
        for name, rate in RATES.items()
    )
    queries = "".join(
        f"  {name}: {{class: {name}, sql: SELECT * FROM {name}_rows,"
        f" sink: {{type: parquet, path: {folder / 'run' / 'sinks' / name}}}}}\n"
        for name in RATES
    )
    path = folder / "flow.yaml"
    path.write_text(f"streams:\n{streams}{FLOW}queries:\n{queries}")
    return path


def started(folder: Path) -> "subprocess.Popen[bytes]":
    command = [sysconfig.get_path("scripts") + "/spillway", "run", str(written(folder))]
    with (folder / "run" / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--folder", str(folder / "run"), "--listen", "off", "--json"],
            stdout=log,
            stderr=log,
        )


def test_a_killed_flow_loses_and_doubles_nothing_in_any_class(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    places = [Queried(root=tmp_path / "run", name=name) for name in RATES]
    generator, replayed = random.Random(KILLS), 0
    for _ in range(KILLS):
        flow = started(tmp_path)
        for place in places:
            wait_for_offset(place, offsets(place) + 1 + generator.randrange(1, 4), flow)
        time.sleep(generator.uniform(0.0, 0.5))
        kill_tree(flow)
        replayed += sum(map(in_flight, places))
    flow = started(tmp_path)
    for place in places:
        wait_for_offset(place, offsets(place) + 4, flow)
    flow.terminate()
    assert flow.wait(120) == 0
    totals = {place.name: place.require_exact().totals for place in places}
    assert totals["bronze"].shed > 0
    assert totals["gold"].shed == 0
    count(killed=KILLS, replayed=replayed, compared=sum(t.admitted for t in totals.values()))
