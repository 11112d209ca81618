"""`spillway ledger --positions` where a shedder looked at the data: the log is read again."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule, Stretch
from spillway.gate.shedders.utility import Utility
from spillway.logs import catalog
from spillway.ports import Span

OPTIONS = {"rate": "1000", "columns": "id position, value double(0, 1)"}
PINNED = {"source": "synthetic", "start": "1700000000.0"}
FLOW = f"""
streams:
  ticks:
    source: synthetic
    options: {json.dumps(OPTIONS)}
    shedder: utility
    utility: value
classes: {{default: {{delay: 2s}}}}
queries:
  q: {{sql: SELECT id FROM ticks}}
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    selection = Utility(column="value")
    offset = Offset(
        gate="q/ticks",
        began_us=1,
        seq=1,
        planned_us=2,
        stretches=(Stretch(partition=0, start=100, read=150, stop=5_150),),
        rule=Rule(keep_ppm=400_000, selection=selection),
        totals=Totals(offered=5_050, admitted=2_000, shed=3_050),
        pinned=PINNED,
    )
    (tmp_path / "ledger").write_text(json.dumps(encode(offset)) + "\n")
    (tmp_path / "flow.yaml").write_text(FLOW)
    return tmp_path / "ledger"


def test_what_was_shed_is_what_was_least_useful_and_what_was_never_read(ledger: Path) -> None:
    flow = str(ledger.with_name("flow.yaml"))
    result = CliRunner().invoke(
        app, ["ledger", str(ledger), "--positions", "1", "--flow", flow, "--json"]
    )
    assert result.exit_code == 0, result.output
    [batch] = json.loads(result.output)["batches"]
    shed = np.array(batch["shed"]["0"])
    assert len(shed) == 3_050
    assert shed[:50].tolist() == list(range(100, 150))
    log = catalog.open_log({**OPTIONS, **PINNED}, None)
    [rows] = log.read(Span(partition=0, start=150, stop=5_150), None)
    values = rows.column("value").to_numpy()
    gone = np.isin(np.arange(150, 5_150), shed)
    assert values[gone].max() <= values[~gone].min()


def test_without_the_flow_file_the_command_says_what_it_needs(ledger: Path) -> None:
    result = CliRunner().invoke(app, ["ledger", str(ledger), "--positions", "1"])
    assert isinstance(result.exception, SpillwayError)
    assert "--flow" in str(result.exception)
