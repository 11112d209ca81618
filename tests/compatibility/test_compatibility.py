"""What earlier versions wrote is read; what is written today, those who know it can read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from samples import entries, offsets, records, written

from spillway.check.flow_file import load_flow
from spillway.coding import from_json
from spillway.gate.offsets import decode
from spillway.hosts.cluster.messages import NODE, Assignment, NodeReport
from spillway.hosts.cluster.records import Record, decoded
from spillway.hosts.spark.driver.settings import Settings
from spillway.hosts.spark.files import read_ledger
from spillway.journal.entries import Event
from spillway.journal.files import read_journal
from spillway.model import Decided, KeepFraction, KeepOfBacklog

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.name[0].isdigit())
NEWEST = VERSIONS[-1]
FORMATS = {"ledger.jsonl", "journal.jsonl", "flow.yaml"}  # that every version has


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_has_a_sample_of_every_format(version: str) -> None:
    assert {path.name for path in (HERE / version).iterdir()} >= FORMATS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_is_read(version: str) -> None:
    found = read_ledger(HERE / version / "ledger.jsonl")
    assert [offset.seq for offset in found] == [0, 1, 2]
    assert all(offset.totals.pending >= 0 for offset in found)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_journal_is_read(version: str) -> None:
    found = list(read_journal(HERE / version / "journal.jsonl"))
    assert isinstance(found[0], Event)
    assert found[0].kind == "started"
    fraction, backlog = (entry for entry in found if isinstance(entry, Decided))
    assert fraction.decision.action == KeepFraction(fraction=0.4)
    assert backlog.decision.action == KeepOfBacklog(tuples=20)
    assert str(fraction.measurement.target) == "p99 2s"
    assert fraction.measurement.prices is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_flow_file_is_right(version: str) -> None:
    assert list(load_flow(HERE / version / "flow.yaml").classes) == ["gold", "silver", "bronze"]


def test_nothing_is_lost_on_the_way() -> None:
    folder = HERE / NEWEST
    assert read_ledger(folder / "ledger.jsonl") == offsets()
    assert list(read_journal(folder / "journal.jsonl")) == entries()
    lines = (folder / "control-log.jsonl").read_bytes().splitlines()
    for line, now in zip(lines, records(), strict=True):
        then = decoded(line, "shop", "the log")
        assert isinstance(then, Record)
        assert (then.key, then.epoch, then.writer) == (now.key, now.epoch, now.writer)
        kind = NodeReport if then.key.startswith(NODE) else Assignment
        if then.body is not None and now.body is not None:
            assert from_json(kind, then.body) == from_json(kind, now.body)


def test_settings_that_were_changed_hold_on(tmp_path: Path) -> None:
    shutil.copy(HERE / NEWEST / "overrides.json", tmp_path)
    flow = load_flow(HERE / NEWEST / "flow.yaml")
    settings = Settings(flow, tmp_path / "overrides.json")
    assert settings.value("gold.delay") == "1s"
    assert settings.ignored == {}


@pytest.mark.parametrize("name", sorted(written()))
def test_what_the_newest_sample_says_is_still_written_where_it_stood(name: str) -> None:
    """More may be written; what is left out or moved would be missed by those who read it."""
    then, now = (HERE / NEWEST / name).read_bytes(), written()[name]
    if name.endswith(".jsonl"):
        lines = list(zip(then.splitlines(), now.splitlines(), strict=True))
    else:
        lines = [(then, now)]
    for before, after in lines:
        assert missing(json.loads(before), json.loads(after)) == []


def missing(then: Any, now: Any, place: str = "") -> list[str]:
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            said
            for key, value in then.items()
            for said in (
                missing(value, now[key], f"{place}.{key}") if key in now else [f"{place}.{key}"]
            )
        ]
    return [] if then == now else [f"{place} is {now}, was {then}"]


def test_a_version_that_is_not_known_is_refused_or_skipped_in_words() -> None:
    [line, *_] = (HERE / NEWEST / "ledger.jsonl").read_text().splitlines()
    with pytest.raises(Exception, match="format version 2: this release reads version 1"):
        decode({**json.loads(line), "v": 2})
    [line, *_] = (HERE / NEWEST / "control-log.jsonl").read_text().splitlines()
    later = json.dumps({**json.loads(line), "v": 2}).encode()
    assert "version 2 of 'x', known is 1" in str(decoded(later, "shop", "the log"))
    assert isinstance(decoded(line.encode(), "shop", "the log"), Record)
