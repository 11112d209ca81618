"""What every control log promises, over both adapters, with real kills and real freezes."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import control_log_cases
import pytest
from control_log_cases import Place, opened, record

from spillway.errors import SpillwayError
from spillway.hosts.cluster import folder as folder_module
from spillway.hosts.cluster.control_log import AwayError, ControlLog, Latest, OvertakenError
from spillway.hosts.cluster.folder import FolderLog
from spillway.hosts.cluster.records import Record

KINDS = ["folder", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return {"kind": "folder", "at": str(tmp_path / "control")}
    broker = request.getfixturevalue("kafka_broker")
    topic = f"control-{uuid.uuid4().hex[:8]}"
    return {"kind": "kafka", "at": broker.bootstrap, "topic": topic}


@pytest.fixture
def log(place: Place) -> Iterator[ControlLog]:
    made = opened(place)
    yield made
    made.close()


def bodies(log: ControlLog, position: int = 0) -> list[Any]:
    return [placed.record.body for placed in log.read(position).placed]


def test_what_is_appended_is_read_by_everybody_in_order(log: ControlLog, place: Place) -> None:
    for number in range(5):
        log.append(record("a", number, n=number))
    assert bodies(log) == [{"n": n} for n in range(5)]
    assert bodies(opened(place)) == [{"n": n} for n in range(5)]


def test_reading_on_gives_only_what_is_new(log: ControlLog) -> None:
    log.append(record("a", n=1))
    entries = log.read(0)
    assert log.read(entries.next).placed == ()
    log.append(record("a", n=2))
    assert bodies(log, entries.next) == [{"n": 2}]


def test_an_append_under_an_expected_position_fails_once_the_log_has_gone_on(
    log: ControlLog, place: Place
) -> None:
    other = opened(place)
    mine, theirs = Latest(log), Latest(other)
    mine.read_on()
    theirs.read_on()
    mine.append(record("leader", n=1))
    with pytest.raises(OvertakenError):
        theirs.append(record("leader", n=2))
    assert bodies(log) == [{"n": 1}]


def test_two_that_both_believe_they_lead_never_both_write(log: ControlLog, place: Place) -> None:
    """Each goes on without reading; whoever was overtaken finds out at its next append."""
    first, second = Latest(log), Latest(opened(place))
    first.read_on()
    first.append(record("leader", 1, "first", n=1))
    first.append(record("leader", 1, "first", n=2))
    second.read_on()
    second.append(record("leader", 2, "second", n=3))
    with pytest.raises(OvertakenError):
        first.append(record("leader", 1, "first", n=4))
    second.append(record("leader", 2, "second", n=5))
    with pytest.raises(OvertakenError):
        first.append(record("leader", 1, "first", n=6))
    first.read_on()
    first.append(record("leader", 3, "first", n=7))
    with pytest.raises(OvertakenError):
        second.append(record("leader", 2, "second", n=8))
    assert bodies(log) == [{"n": n} for n in (1, 2, 3, 5, 7)]


def test_reports_of_many_writers_are_all_there(log: ControlLog, place: Place) -> None:
    def write(name: str) -> None:
        mine = opened(place)
        for number in range(20):
            mine.append(record(f"node/{name}", number, name, n=number))

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    found = [(p.record.writer, p.record.epoch) for p in log.read(0).placed]
    assert sorted(found) == [(name, number) for name in "abc" for number in range(20)]


def test_the_last_record_of_a_key_holds_and_a_key_can_go(log: ControlLog) -> None:
    for body in ({"n": 1}, {"n": 2}):
        log.append(Record(cluster="tests", key="a", epoch=1, writer="w", body=body))
    log.append(record("b", n=3))
    known = Latest(log)
    known.read_on()
    assert known.by_key["a"].record.body == {"n": 2}
    log.append(Record(cluster="tests", key="a", epoch=2, writer="w", body=None))
    known.read_on()
    assert sorted(known.by_key) == ["b"]


def test_another_cluster_in_the_log_is_refused_in_a_line(log: ControlLog, place: Place) -> None:
    log.append(record("a", n=1))
    with pytest.raises(SpillwayError, match="cluster 'tests', not of 'other'"):
        opened(place, "other").read(0)


def test_an_unknown_version_is_reported_and_skipped(
    log: ControlLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(record("a", n=1))
    with monkeypatch.context() as patch:
        patch.setattr("spillway.hosts.cluster.records.VERSION", 2)
        log.append(record("a", 2, "newer", n=2))
    log.append(record("b", n=3))
    entries = log.read(0)
    assert [placed.record.key for placed in entries.placed] == ["a", "b"]
    assert len(entries.skipped) == 1
    assert "version 2 of 'newer'" in entries.skipped[0]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_kills_and_freezes_lose_nothing_and_let_nobody_write_unseen(
    place: Place, tmp_path: Path
) -> None:
    """Three processes append, each record naming the one before it; one is killed, all freeze."""
    log, until = opened(place), tmp_path / "until"
    log.append(record("first", id="", saw=""))
    script, chance = control_log_cases.__file__, random.Random(7)
    outputs = [tmp_path / f"{name}.out" for name in "abcd"]
    writers = []
    for output in outputs:
        command = [sys.executable, script, json.dumps(place), output.stem, str(until)]
        writers.append(subprocess.Popen(command, stdout=output.open("wb")))
    try:
        time.sleep(3.0)
        writers[3].kill()
        for _ in range(12):
            frozen = writers[chance.randrange(3)]
            time.sleep(chance.uniform(0.05, 0.3))
            os.kill(frozen.pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0.1, 1.0))
            os.kill(frozen.pid, signal.SIGCONT)
        until.touch()
        assert [writer.wait(60) for writer in writers[:3]] == [0, 0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    acknowledged = {line for output in outputs for line in output.read_text().split()}
    known = Latest(opened(place))
    ids, saw = [], ""
    for placed in known.read_on().placed:
        body = placed.record.body
        assert body is not None
        if known.position < folder_module.SEGMENT:  # then no link of the chain was compacted
            assert body["saw"] == saw, f"{body['id']} was decided without having seen {saw}"
        saw = body["id"]
        ids.append(saw)
    assert len(ids) == len(set(ids))
    assert len(acknowledged) > 20
    if known.position < folder_module.SEGMENT:
        assert acknowledged <= set(ids)


# -- the folder alone


@pytest.fixture
def control(tmp_path: Path) -> Place:
    return {"kind": "folder", "at": str(tmp_path / "control")}


def test_a_folder_is_private_and_one_that_is_not_is_refused(control: Place) -> None:
    opened(control).append(record("a"))
    path = Path(control["at"])
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o755)
    with pytest.raises(SpillwayError, match="chmod 700"):
        opened(control).read(0)


def test_a_folder_stays_small_and_forgets_no_last_record(
    control: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "SEGMENT", 8)
    log, early = opened(control), Latest(opened(control))
    log.append(record("rare", n=0))
    log.append(record("gone", n=0))
    early.read_on()
    log.append(Record(cluster="tests", key="gone", epoch=2, writer="w", body=None))
    for number in range(40):
        log.append(record(f"k{number % 3}", number, n=number))
    assert sum(path.is_file() for path in Path(control["at"]).rglob("*")) < 16
    late = Latest(opened(control))
    assert late.read_on().whole
    early.read_on()
    assert early.by_key == late.by_key
    assert {key: p.record.epoch for key, p in late.by_key.items()} == {
        **{"rare": 1, "k0": 39, "k1": 37, "k2": 38}
    }


def test_a_writer_that_froze_before_a_number_was_removed_does_not_get_it(
    control: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "SEGMENT", 8)
    frozen, log = opened(control), opened(control)
    for number in range(3):
        log.append(record("a", number))
    position = frozen.read(0).next
    for number in range(30):
        log.append(record("a", number))
    before = log.read(0)
    with pytest.raises(OvertakenError):
        frozen.append(record("a", 99), position)
    assert opened(control).read(0) == before


def test_a_full_disk_is_an_answer_and_leaves_nothing_behind(
    control: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(control)
    log.append(record("a", n=1))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(AwayError, match="No space left"):
            log.append(record("a", n=2))
    assert bodies(log) == [{"n": 1}]
    assert list((Path(control["at"]) / "drafts").iterdir()) == []
    log.append(record("a", n=3))
    assert bodies(log) == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize("point", ["link", "fsync"])
def test_a_writer_killed_around_the_link_leaves_a_whole_record_or_none(
    control: Place, point: str
) -> None:
    """The process dies at the very call: before the link or after it, and another goes on."""
    opened(control).append(record("a", n=1))
    calls = {"link": 1, "fsync": 2}[point]  # the second fsync is that of the folder
    program = f"""
import json, os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from control_log_cases import opened, record
log = opened(json.loads({json.dumps(control)!r}))
position, real, left = log.read(0).next, os.{point}, [{calls}]
def dying(*given):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given)
os.{point} = dying
log.append(record("a", n=2), position)
"""
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -signal.SIGKILL
    log = opened(control)
    expected = [{"n": 1}] if point == "link" else [{"n": 1}, {"n": 2}]
    assert bodies(log) == expected
    log.append(record("a", n=3), log.read(0).next)
    assert bodies(log) == [*expected, {"n": 3}]


# -- Kafka alone


@pytest.mark.kafka
def test_a_topic_that_forgets_is_refused(kafka_broker: Any) -> None:
    kafka_broker.create_topic("forgetful", 2)
    place = {"kind": "kafka", "at": kafka_broker.bootstrap, "topic": "forgetful"}
    with pytest.raises(SpillwayError, match=r"2 partitions and cleanup\.policy 'delete'"):
        opened(place).read(0)


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_that_goes_away_is_an_answer_and_comes_back(tmp_path: Path) -> None:
    from broker import Broker, UnavailableError

    broker = Broker(tmp_path)
    try:
        broker.start()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    try:
        place = {"kind": "kafka", "at": broker.bootstrap, "topic": "control"}
        known = Latest(opened(place))
        known.read_on()
        known.append(record("a", n=1))
        broker.stop()
        with pytest.raises(AwayError):
            known.append(record("a", n=2))
        with pytest.raises(AwayError):
            known.read_on()
        broker.start()
        known.read_on()
        known.append(record("a", n=3))
        assert bodies(opened(place))[-1] == {"n": 3}
    finally:
        broker.stop()


@pytest.mark.kafka
def test_an_unreachable_broker_is_one_clear_line() -> None:
    from spillway.hosts.cluster.kafka import KafkaLog

    log = KafkaLog({"bootstrap.servers": "127.0.0.1:1"}, "control", "tests", answer_s=1.0)
    with pytest.raises(AwayError, match=r"control log at 127\.0\.0\.1:1 does not answer"):
        log.read(0)


def private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.mark.parametrize("part", ["", "drafts", "snapshots"])
def test_a_folder_behind_a_link_is_refused(tmp_path: Path, part: str) -> None:
    """Another user's link would lead us to write, and to remove, files of our own elsewhere."""
    treasure = private(tmp_path / "treasure")
    (treasure / "000000000003").write_text("dear")
    folder = tmp_path / "log"
    if part:
        private(folder)
    (folder / part).symlink_to(treasure)
    with pytest.raises(SpillwayError, match="is no folder, or a link") as refused:
        FolderLog(folder, "tests").append(record("k"))
    assert "\n" not in str(refused.value)
    assert [path.name for path in treasure.iterdir()] == ["000000000003"]


@pytest.mark.parametrize("part", ["drafts", "snapshots"])
def test_a_part_that_others_can_write_to_is_refused(tmp_path: Path, part: str) -> None:
    folder = private(tmp_path / "log")
    (folder / part).mkdir()
    (folder / part).chmod(0o777)
    with pytest.raises(SpillwayError, match="is open to other users"):
        FolderLog(folder, "tests").read(0)


@pytest.mark.parametrize("name", ["5", "\u0663", "1" * 200, "0000000000005", "5.swp"])
@pytest.mark.parametrize("part", ["", "snapshots"])
def test_a_file_of_another_name_is_no_record(tmp_path: Path, part: str, name: str) -> None:
    folder = tmp_path / "log"
    FolderLog(folder, "tests").append(record("k"))
    (folder / part / name).write_text("{}")
    entries = FolderLog(folder, "tests").read(0)
    assert [placed.record.key for placed in entries.placed] == ["k"]
    assert entries.next == 1


def test_a_damaged_snapshot_is_refused_in_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    FolderLog(folder, "tests").append(record("k"))
    (folder / "snapshots" / "000000000512").write_bytes(b"\x00 not a number\n")
    with pytest.raises(SpillwayError, match="is a damaged snapshot") as refused:
        FolderLog(folder, "tests").read(0)
    assert "\n" not in str(refused.value)
