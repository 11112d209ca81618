"""Ledgers and checkpoints on storage that does not append: pyarrow's file system on a disk, and an
S3 interface over HTTP where moto is installed (`pip install 'moto[s3]' flask flask-cors`)."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from typer.testing import CliRunner

from spillway import storage as storage_module
from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule, Stretch
from spillway.hosts.spark import segments
from spillway.hosts.spark.archives import archive_of
from spillway.hosts.spark.files import audits, logged_batches, read_ledger
from spillway.hosts.spark.segments import SegmentArchive, segments_of
from spillway.storage import Remote, place_at

BUCKET = "state"
LEDGER = f"s3a://{BUCKET}/jobs/orders/ledger"
STORED = Path(__file__).parents[3] / "spark" / "stored"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    pytest.importorskip("moto.moto_server")
    from s3 import Storage

    server = Storage()
    server.make_bucket()
    yield server
    server.stop()


class Disk(SubTreeFileSystem):  # type: ignore[misc]
    """As an object store: no folder has to be made before a file in it."""

    def open_output_stream(self, path: str, *more: Any, **options: Any) -> Any:
        self.create_dir(path.rpartition("/")[0], recursive=True)
        return super().open_output_stream(path, *more, **options)


@pytest.fixture(params=["disk", "s3"])
def stored(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where URIs lead to."""
    if request.param == "disk":
        disk = Disk(str(tmp_path), LocalFileSystem())
        monkeypatch.setattr(storage_module, "_s3", lambda: disk)
    else:
        request.getfixturevalue("s3")


@pytest.fixture
def s3(server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(storage_module, "_ATTEMPTS", 1)
    monkeypatch.setattr(storage_module, "_WAIT_S", 5.0)
    monkeypatch.setattr(segments, "_FIRST_RETRY_S", 0.05)
    storage_module._s3.cache_clear()
    yield server
    server.refusing, server.slow_s = "", 0.0
    storage_module._s3.cache_clear()


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Remote:
    """One of its own for each test."""
    place = place_at(f"{LEDGER}-{quote(request.node.name, safe='')}")
    assert isinstance(place, Remote)
    return place


def offset(seq: int, began_us: int = 1) -> dict[str, Any]:
    stretch = Stretch(partition=0, start=10 * seq, read=10 * seq, stop=10 * seq + 10)
    if seq == 0:
        stretch = replace(stretch, start=10, read=10, stop=10)
    return encode(
        Offset(
            gate="orders",
            began_us=began_us,
            seq=seq,
            planned_us=1_700_000_000_000_000 + seq,
            stretches=(stretch,),
            rule=Rule(reason="all"),
            totals=Totals(offered=10 * seq, admitted=10 * seq),
            ends={0: stretch.stop},
        )
    )


def eventually(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.02)


def numbers(ledger: Remote) -> list[int]:
    return [batch.seq for batch in read_ledger(ledger)]


def nothing() -> list[dict[str, Any]]:
    return []


def test_lines_come_in_segments_and_an_audit_reads_them_as_one_ledger(
    stored: None, ledger: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "FULL_BYTES", 1500)
    archive = SegmentArchive(ledger, nothing)
    for seq in range(20):
        archive.add(offset(seq))
        eventually(lambda s=seq: numbers(ledger)[-1:] == [s])  # type: ignore[misc]
    names = [segment.name for segment in segments_of(ledger)]
    assert names[:2] == ["000000000001.jsonl", "000000000002.jsonl"]
    assert len(names) >= 3
    [audit] = audits(ledger, None)
    assert audit.exact, audit.problems
    shown = CliRunner().invoke(app, ["ledger", str(ledger), "--json"])
    assert json.loads(shown.stdout)["gates"][0]["total"]["admitted"] == 190


def test_a_missing_segment_shows(
    stored: None, ledger: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "FULL_BYTES", 1)
    for name in (1, 2, 4):
        (ledger / f"{name:012}.jsonl").write_bytes(json.dumps(offset(name)).encode() + b"\n")
    with pytest.raises(SpillwayError, match="has no segment 000000000003: restore it"):
        read_ledger(ledger)


@pytest.mark.parametrize("fault", ["503 Slow Down", "403 Forbidden", "away", "slow"])
def test_through_a_fault_nobody_waits_and_nothing_is_lost_or_doubled(
    s3: Any, ledger: Remote, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    archive = SegmentArchive(ledger, nothing)
    archive.add(offset(0))
    eventually(lambda: numbers(ledger) == [0])

    def more() -> None:
        for seq in range(1, 50):
            archive.add(offset(seq))

    if fault == "away":
        with s3.away():
            more()
            eventually(lambda: "the query goes on" in capfd.readouterr().err)
    elif fault == "slow":
        s3.slow_s = 0.5
        more()
        s3.slow_s = 0.0
    else:
        s3.refusing = fault
        more()
        eventually(lambda: "the query goes on" in capfd.readouterr().err)
        s3.refusing = ""
    eventually(lambda: numbers(ledger) == list(range(50)))
    [audit] = audits(ledger, None)
    assert audit.exact


def test_what_a_kill_left_unwritten_is_recalled_from_sparks_own_log(
    stored: None, ledger: Remote
) -> None:
    before = SegmentArchive(ledger, nothing)
    for seq in range(5):
        before.add(offset(seq))
    eventually(lambda: len(numbers(ledger)) == 5)
    # Batches 5 to 8 were done when the driver was killed, and never written.
    after = SegmentArchive(ledger, lambda: [offset(seq) for seq in range(2, 9)])
    after.add(offset(8))
    after.add(offset(9))
    eventually(lambda: numbers(ledger) == list(range(10)))
    other_life = SegmentArchive(ledger, lambda: [offset(3)])
    other_life.add(offset(0, began_us=7))
    eventually(lambda: numbers(ledger) == [*range(10), 0])


def test_a_checkpoint_is_read_by_its_uri(stored: None) -> None:
    remote = place_at(f"s3://{BUCKET}/checkpoints/q")
    assert isinstance(remote, Remote)
    for file in sorted((STORED / "checkpoint").rglob("*")):
        if file.is_file():
            Remote(f"{remote}/{file.relative_to(STORED / 'checkpoint')}").write_bytes(
                file.read_bytes()
            )
    local = logged_batches(STORED / "checkpoint")
    assert logged_batches(remote) == local
    there = CliRunner().invoke(app, ["offsets", f"s3a://{BUCKET}/checkpoints/q"])
    here = CliRunner().invoke(app, ["offsets", str(STORED / "checkpoint")])
    assert (there.exit_code, there.stdout) == (here.exit_code, here.stdout)
    with pytest.raises(SpillwayError, match="is no checkpoint"):
        logged_batches(place_at(f"s3://{BUCKET}/nothing"))


def test_options_tell_a_disk_from_storage_and_refuse_what_is_neither(tmp_path: Path) -> None:
    at = GateOptions.parse({"delay": "2s", "checkpoint": "s3a://b/c"})
    assert at.ledger == "s3a://b/c/spillway/ledger"
    assert isinstance(archive_of(at.ledger, at.checkpoint), SegmentArchive)
    here = GateOptions.parse({"delay": "2s", "ledger": f"file://{tmp_path}/l.jsonl"})
    assert here.ledger == f"{tmp_path}/l.jsonl"
    with pytest.raises(SpillwayError, match=r"no storage that is known: give a path, file: or"):
        GateOptions.parse({"delay": "2s", "ledger": "ftp://b/l.jsonl"})
    with pytest.raises(SpillwayError, match="option 'record' is 's3a://b/r': it must be on this"):
        GateOptions.parse({"delay": "2s", "record": "s3a://b/r"})
