"""Checkpoints between Spark's own Kafka source and the gate: what is said, what is written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from s3 import BUCKET, Storage
from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Stretch
from spillway.hosts.spark.adoption import KEPT
from spillway.logs.topics import number_of
from spillway.storage import place_at

METADATA = '{"batchWatermarkMs":1767225600000,"batchTimestampMs":1767225660000,"conf":{}}'
SPARKS = {"orders": {"0": 40, "1": 41}, "returns": {"0": 7}}


def gates(seq: int, **topics: int) -> dict[str, object]:
    """Where a gate of these topics stands, one partition each."""
    stretches = tuple(
        Stretch(partition=number_of(place, 0), start=at - 5, read=at - 5, stop=at)
        for place, at in enumerate(topics.values())
    )
    pinned = {"source": "kafka", "topics": json.dumps(dict.fromkeys(topics, ""))}
    offset = Offset(
        gate="g",
        began_us=1,
        seq=seq,
        planned_us=2,
        stretches=stretches,
        totals=Totals(offered=10, admitted=6, shed=4),
        pinned=pinned,
    )
    return encode(offset)


def checkpoint_at(folder: Path, *batches: tuple[object, ...], completed: int | None = None) -> Path:
    """As Spark writes it: a version, metadata, a line for each source."""
    for name in ("offsets", "commits", "state/0/0", "state/0/1"):
        (folder / name).mkdir(parents=True)
    for number, sources in enumerate(batches):
        lines = [json.dumps(source) if source is not None else "-" for source in sources]
        (folder / "offsets" / str(number)).write_text("\n".join(["v1", METADATA, *lines]))
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if completed is None or number <= completed:
            (folder / "commits" / str(number)).write_text("v1\n{}")
    return folder


def said(*words: object) -> str:
    result = CliRunner().invoke(app, ["adopt", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.output


def offsets(folder: Path, number: int) -> list[object]:
    lines = (folder / "offsets" / str(number)).read_text().split("\n")
    assert lines[:2] == ["v1", METADATA]
    return [json.loads(line) for line in lines[2:]]


def test_what_will_happen_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    place = checkpoint_at(tmp_path / "c", (SPARKS,), (SPARKS,), completed=0)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    told = said(place)
    assert "source 1: Spark's own Kafka source, orders 0 at 40, 1 at 41; returns 0 at 7" in told
    assert "operator 0, 2 partitions; watermark 2026-01-01T00:00:00Z" in told
    assert "batch 1 will be run again first" in told
    assert "nothing has to be written" in told
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_gates_checkpoint_is_given_back_with_what_stood_there_kept(tmp_path: Path) -> None:
    batches = [(gates(seq, orders=5 * seq + 5, returns=seq + 5), SPARKS) for seq in range(4)]
    place = checkpoint_at(tmp_path / "c", *batches)
    dry = said(place, "--back", "--dry-run")
    assert "would write the last two entries" in dry
    assert not (place / KEPT).exists()
    told = json.loads(said(place, "--back", "--json"))
    assert told["written"] == [2, 3]
    assert [source["kind"] for source in told["sources"]] == ["gate", "kafka"]
    assert offsets(place, 3) == [{"orders": {"0": 20}, "returns": {"0": 8}}, SPARKS]
    assert offsets(place, 2) == [{"orders": {"0": 15}, "returns": {"0": 7}}, SPARKS]
    assert offsets(place, 1) == [gates(1, orders=10, returns=6), SPARKS]
    assert json.loads((place / KEPT / "3").read_text().split("\n")[2]) == batches[3][0]
    assert not (place / "offsets" / ".3.crc").exists()
    assert (place / "offsets" / ".1.crc").exists()
    with pytest.raises(SpillwayError, match="is of no gate: there is nothing to give back"):
        said(place, "--back")


def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    begun = checkpoint_at(tmp_path / "begun", (gates(0, o=5),), (gates(1, o=9),), completed=0)
    with pytest.raises(SpillwayError, match=r"batch 1 of .* was begun and not completed"):
        said(begun, "--back")
    files = checkpoint_at(tmp_path / "files", ({"logOffset": 3},))
    with pytest.raises(SpillwayError, match="neither a gate nor Spark's own Kafka source"):
        said(files)
    other = {**gates(1, o=9), "pinned": {"source": "synthetic"}}
    made = checkpoint_at(tmp_path / "made", (other,))
    with pytest.raises(SpillwayError, match="reads something else than Kafka"):
        said(made, "--back")
    with pytest.raises(SpillwayError, match="is no checkpoint"):
        said(tmp_path)
    assert not list(tmp_path.rglob(KEPT))


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    made = Storage()
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    from spillway import storage as ours

    ours._s3.cache_clear()
    made.make_bucket()
    yield made
    made.stop()
    ours._s3.cache_clear()


def test_it_is_the_same_on_object_storage(tmp_path: Path, storage: Storage) -> None:
    batches = [(gates(seq, orders=5 * seq + 5),) for seq in range(3)]
    here = checkpoint_at(tmp_path / "c", *batches)
    place = place_at(f"s3a://{BUCKET}/jobs/c")
    for path in here.rglob("*"):
        if path.is_file():
            (place / os.fspath(path.relative_to(here))).write_bytes(path.read_bytes())
    assert "would write" in said(str(place), "--back", "--dry-run")
    assert json.loads(said(str(place), "--back", "--json"))["written"] == [1, 2]
    text = (place / "offsets" / "2").read_text()
    assert json.loads(text.split("\n")[2]) == {"orders": {"0": 15}}
    assert (place / KEPT / "2").exists()
