"""Both ends of the channel over a real socket: what arrives, what breaks, and what a gate does."""

import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from spillway.classes.control import ClassControl, ClassTerms
from spillway.clock import ManualClock, WallClock
from spillway.coding import to_json
from spillway.errors import SpillwayError
from spillway.hosts.spark.driver.channel import (
    ChannelServer,
    request_change,
    request_query_change,
)
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.planner import asking
from spillway.hosts.spark.planner.asking import RETRY_S, Driver
from spillway.model import (
    Backlog,
    BatchRecord,
    Decided,
    Decision,
    Delays,
    Ended,
    KeepOfBacklog,
    Measurement,
    Order,
    Prices,
    Report,
    Target,
)

TARGET = Target(delay_s=2.0, statistic="p95")
ORDER = Order(target=TARGET, may_start=False, turn=0.25, spared=True)
BACKLOG = Backlog(pending_tuples=3, mean_age_s=0.5, statistic_age_s=0.9, oldest_age_s=1.0)
RECORD = BatchRecord(kept_tuples=6, scanned_tuples=10, duration_s=0.3, ended_s=12.4)
PRICES = Prices(fixed_s=0.2, kept_s=1e-6, pace=1.5, doubts=(1e-3, 0.0, 0.0, 1e-18, 0.0, 0.0))
DECIDED = Decided(
    measurement=Measurement(
        time_s=12.1,
        period_s=1.0,
        target=TARGET,
        offered_tuples=10,
        admitted_tuples=6,
        shed_tuples=4,
        completed_tuples=6,
        queued_tuples=3,
        queued_load_s=3e-6,
        offered_load=1e-5,
        admitted_load=6e-6,
        cost_s=1e-6,
        delay_s=None,
        busy_s=0.3,
        backlog=BACKLOG,
        batches=(RECORD,),
        prices=PRICES,
        query="q",
    ),
    decision=Decision(action=KeepOfBacklog(tuples=2), reason="two fit", headroom=0.5),
)
DELAYS = Delays(tuples=6, mean_s=0.7, quantiles_s=(1.1, 1.0, 0.9, 0.3))


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer to answer than a gate allows."""
    monkeypatch.setattr(asking, "ANSWER_S", 10.0)


def report(query: str = "q", wait_s: float = 10.0) -> Report:
    return Report(
        query=query,
        class_name="gold",
        time_s=12.5,
        offered_tuples=10,
        admitted_tuples=6,
        shed_tuples=4,
        completed_tuples=6,
        backlog=BACKLOG,
        ended=(Ended(record=RECORD, delays=(DELAYS, DELAYS)),),
        decided=(DECIDED,),
        prices=PRICES,
        wait_s=wait_s,
    )


class Loop:
    """Answers like a driver, and remembers."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.seen: list[Report] = []
        self.left: list[str] = []
        self.changes: list[tuple[str, str]] = []
        self.hold = hold
        self.order, self.answered = ORDER, 0

    def answer(self, said: Report) -> Order:
        order = self.order
        self.seen.append(said)
        if self.hold is not None:
            self.hold.wait(60.0)
        self.answered += 1
        return order

    def leave(self, query: str) -> None:
        self.left.append(query)

    def change(self, key: str, to: str) -> None:
        if to == "never":
            raise SpillwayError(f"{key} cannot become '{to}'")
        self.changes.append((key, to))


@contextmanager
def serving(loop: Loop | Dispatcher) -> Iterator[ChannelServer]:
    change = (loop.change,) if isinstance(loop, Loop) else ()
    server = ChannelServer(loop.answer, loop.leave, *change)
    try:
        yield server
    finally:
        server.close()


def driver(server: ChannelServer, clock: ManualClock | None = None) -> Driver:
    return Driver(str(server.path), clock or ManualClock())


def until(condition: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < ends_s, "did not happen in time"
        time.sleep(0.002)


@pytest.mark.usefixtures("no_hurry")
def test_a_report_arrives_whole_and_so_does_the_order() -> None:
    loop = Loop()
    with serving(loop) as server:
        gate = driver(server)
        assert gate.ask(report()) == ORDER
        assert gate.ask(report(wait_s=0.1)) == ORDER
    assert loop.seen == [report(), report(wait_s=0.1)]


def test_a_report_of_a_long_silence_arrives_whole() -> None:
    """Everything that a gate keeps while the driver does not answer."""
    loop = Loop()
    long = replace(report(), ended=report().ended * 100, decided=report().decided * 100)
    with serving(loop) as server:
        assert driver(server).ask(long) == ORDER
    assert loop.seen == [long]


def test_only_the_owner_may_enter_the_folder_of_the_socket() -> None:
    with serving(Loop()) as server:
        assert server.path.parent.stat().st_mode & 0o077 == 0
    assert not server.path.parent.exists()


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o702])
def test_a_socket_in_a_folder_that_others_may_enter_is_not_trusted(mode: int) -> None:
    loop = Loop()
    with serving(loop) as server:
        os.chmod(server.path.parent, mode)
        assert driver(server).ask(report()) is None
    assert loop.seen == []


# -- a driver that is not there


@pytest.mark.usefixtures("no_hurry")
def test_without_a_driver_the_gate_is_told_nothing_and_asks_again_later(tmp_path: Path) -> None:
    clock, loop = ManualClock(), Loop()
    gate = Driver(str(tmp_path / "nobody"), clock)
    assert gate.ask(report()) is None
    with serving(loop) as server:
        gate._path = str(server.path)
        assert gate.ask(report()) is None, "it must not hammer a driver that is dead"
        clock.advance(RETRY_S * 1.01)
        assert gate.ask(report()) == ORDER


def test_pauses_between_tries_become_longer_up_to_a_bound(tmp_path: Path) -> None:
    clock = ManualClock(1_000.0)
    gate = Driver(str(tmp_path / "nobody"), clock)
    tries: list[float] = []
    for _ in range(400):
        before = gate._failed_s
        assert gate.ask(report()) is None
        if gate._failed_s != before:
            tries.append(clock.now_s())
        clock.advance(0.1)
    pauses = [later - at for at, later in pairwise(tries)]
    assert pauses[:6] == pytest.approx([1.0, 2.0, 4.0, 8.0, 8.0, 8.0], abs=0.11)


@pytest.mark.usefixtures("no_hurry")
@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_clock_that_jumps_does_not_make_a_pause_longer(tmp_path: Path, jump_s: float) -> None:
    clock = ManualClock(10_000.0)
    gate = Driver(str(tmp_path / "nobody"), clock)
    assert gate.ask(report()) is None
    with serving(Loop()) as server:
        gate._path = str(server.path)
        clock.advance(jump_s)
        assert gate.ask(report()) == ORDER


def test_a_driver_that_hangs_costs_a_bounded_wait() -> None:
    hold = threading.Event()
    with serving(Loop(hold)) as server:
        assert driver(server).ask(report(wait_s=0.1)) is None
        assert not hold.is_set()
        hold.set()


def test_a_driver_that_goes_on_hanging_is_asked_once_and_never_waited_for_again() -> None:
    hold, clock = threading.Event(), ManualClock()
    with serving(loop := Loop(hold)) as server:
        gate = driver(server, clock)
        gate.ask(report(wait_s=0.0))
        for _ in range(300):
            clock.advance(0.1)
            assert gate.ask(report(wait_s=3600.0)) is None
        assert [seen.wait_s for seen in loop.seen] == [0.0]
        hold.set()


@pytest.mark.parametrize("silent_s", [0.0, 30.0])
def test_a_driver_that_is_back_is_asked_at_the_next_batch(
    monkeypatch: pytest.MonkeyPatch, silent_s: float
) -> None:
    """However short or long it was away; what it says late is not taken for what it says now."""
    hold, clock = threading.Event(), ManualClock()
    with serving(loop := Loop(hold)) as server:
        gate = driver(server, clock)
        assert gate.ask(report(wait_s=0.0)) is None
        clock.advance(silent_s)
        monkeypatch.setattr(asking, "ANSWER_S", 10.0)
        said, loop.order = loop.order, replace(ORDER, turn=0.75)
        hold.set()
        until(lambda: loop.answered == 1)
        _readable(gate)
        assert gate.ask(report(wait_s=5.0)) == loop.order != said
        assert [seen.wait_s for seen in loop.seen] == [0.0, 5.0]


def _readable(gate: Driver) -> None:
    assert gate._socket is not None
    ready, _, _ = select.select([gate._socket], [], [], 60.0)
    assert ready


@pytest.mark.usefixtures("no_hurry")
def test_a_frozen_driver_that_dies_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    hold, clock = threading.Event(), ManualClock()
    with serving(Loop(hold)) as server, monkeypatch.context() as hurry:
        gate = driver(server, clock)
        hurry.setattr(asking, "ANSWER_S", 0.25)
        assert gate.ask(report(wait_s=0.0)) is None
    hold.set()
    until(lambda: gate.ask(report()) is None and gate._socket is None)
    with serving(Loop()) as server:
        gate._path = str(server.path)
        clock.advance(RETRY_S * 1.01)
        assert gate.ask(report()) == ORDER


def test_an_answer_in_pieces_is_one() -> None:
    here, there = socket.socketpair()
    gate = Driver("", ManualClock())
    gate._socket = here
    line = json.dumps(to_json(Order, ORDER)).encode() + b"\n"
    with here, there:
        assert gate.ask(report(wait_s=0.0)) is None
        there.sendall(line[:7])
        assert gate.ask(report()) is None
        there.sendall(line[7:] + line)
        assert gate.ask(report()) == ORDER


@pytest.mark.usefixtures("no_hurry")
def test_a_driver_that_goes_away_is_noticed_and_a_new_one_is_found() -> None:
    clock = ManualClock()
    with serving(Loop()) as server:
        gate = driver(server, clock)
        assert gate.ask(report()) == ORDER
    assert gate.ask(report()) is None
    with serving(Loop()) as server:
        gate._path = str(server.path)
        clock.advance(RETRY_S * 1.01)
        assert gate.ask(report()) == ORDER


ANSWERS = [
    b"",
    b"not json\n",
    b"[]\n",
    b"7\n",
    b"null\n",
    b"{}\n",
    b'{"target":5}\n',
    b'{"target":[1]}\n',
    b'{"target":{"delay_s":0}}\n',
    b'{"target":{"delay_s":"2s"}}\n',
    b'{"target":{"delay_s":2.0},"turn',
    b"\xff\xfe\n",
]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_that_is_none_counts_as_no_answer(tmp_path: Path, answer: bytes) -> None:
    """It never raises: a query must not end because of what the driver says."""
    os.chmod(tmp_path, 0o700)
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.readline()
                stream.write(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert Driver(str(path), ManualClock()).ask(report()) is None
        thread.join(5.0)


# -- gates that come and go


def test_the_driver_learns_when_a_query_is_gone() -> None:
    loop = Loop()
    with serving(loop) as server:
        gate = driver(server)
        gate.ask(report("a"))
        gate.close()
        until(lambda: bool(loop.left))
    assert loop.left == ["a"]


def test_a_query_that_never_reported_does_not_leave() -> None:
    loop = Loop()
    with serving(loop) as server:
        request_change(str(server.path), "gold.delay", "1s")
        gate = driver(server)
        gate.ask(report("a"))
        gate.close()
        until(lambda: bool(loop.left))
    assert loop.left == ["a"]


def test_a_query_that_is_back_by_another_connection_has_not_left() -> None:
    """Its slot and its counts are those of the connection that reported last."""
    loop = Loop()
    with serving(loop) as server:
        before, after = driver(server), driver(server)
        before.ask(report())
        after.ask(report())
        before.close()
        other = driver(server)
        other.ask(report("other"))
        other.close()
        until(lambda: bool(loop.left))
        assert loop.left == ["other"]
        after.close()
        until(lambda: len(loop.left) == 2)
        assert loop.left == ["other", "q"]


def test_every_gate_gets_its_own_answer_however_many_ask_at_once() -> None:
    class Echo(Loop):
        def answer(self, said: Report) -> Order:
            return replace(ORDER, turn=float(said.query))

    answers: dict[int, list[float | None]] = {number: [] for number in range(12)}

    with serving(Echo()) as server:

        def live(number: int) -> None:
            gate = driver(server)
            for _ in range(20):
                order = gate.ask(report(str(number)))
                answers[number].append(None if order is None else order.turn)

        threads = [threading.Thread(target=live, args=(number,)) for number in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
    assert answers == {number: [float(number)] * 20 for number in answers}


def test_a_gate_that_is_held_does_not_keep_others_from_their_answers() -> None:
    hold = threading.Event()

    class HoldsOne(Loop):
        def answer(self, said: Report) -> Order:
            if said.query == "held":
                hold.wait(10.0)
            return ORDER

    answers: list[Order | None] = []
    with serving(HoldsOne()) as server:
        held = driver(server)
        thread = threading.Thread(
            target=lambda: answers.append(held.ask(report("held", wait_s=9.0)))
        )
        thread.start()
        assert driver(server).ask(report("other")) == ORDER
        assert answers == []
        hold.set()
        thread.join(10.0)
    assert answers == [ORDER]


GARBAGE = [
    b"not json\n",
    b"{}\n",
    b"[]\n",
    b"7\n",
    b'"set"\n',
    b'{"set":1}\n',
    b'{"query":"w","decided":[{"measurement":{"target":{"delay_s":0}}}]}\n',
    b"\xff\n",
    b"{",
]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
def test_garbage_on_the_channel_ends_its_connection_and_harms_nobody_else(garbage: bytes) -> None:
    loop = Loop()
    with serving(loop) as server:
        gate = driver(server)
        assert gate.ask(report()) == ORDER
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
            stranger.connect(str(server.path))
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
        assert gate.ask(report()) == ORDER
        assert loop.left == []


# -- changes at run time


def test_a_change_is_made_or_refused_with_the_reason() -> None:
    loop = Loop()
    with serving(loop) as server:
        request_change(str(server.path), "gold.delay", "1s")
        with pytest.raises(SpillwayError, match=r"gold.delay cannot become 'never'"):
            request_change(str(server.path), "gold.delay", "never")
        request_change(str(server.path), "gold.delay", "2s")
    assert loop.changes == [("gold.delay", "1s"), ("gold.delay", "2s")]
    assert loop.left == []


def test_a_flow_that_takes_no_changes_says_so() -> None:
    server = ChannelServer(Loop().answer, Loop().leave)
    with pytest.raises(SpillwayError, match=r"gold.delay cannot be changed here"):
        request_change(str(server.path), "gold.delay", "1s")
    server.close()


def test_a_change_of_a_query_says_what_will_happen_or_why_not() -> None:
    asked: list[tuple[str, object, bool]] = []

    def change(name: str, version: object, only_check: bool) -> list[str]:
        asked.append((name, version, only_check))
        if name == "others":
            raise SpillwayError("query 'others' cannot change: it is Python")
        return ["windows are 1s now", "and 2s after the cut"]

    server = ChannelServer(Loop().answer, Loop().leave, change_query=change)
    path = str(server.path)
    said = request_query_change(path, "counts", {"partitions": 3}, only_check=True)
    assert said == ["windows are 1s now", "and 2s after the cut"]
    request_query_change(path, "counts", None, only_check=False)
    with pytest.raises(SpillwayError, match="it is Python"):
        request_query_change(path, "others", {"sql": "SELECT"}, only_check=False)
    assert asked[:2] == [("counts", {"partitions": 3}, True), ("counts", None, False)]
    server.close()


def test_a_flow_whose_queries_cannot_change_says_so() -> None:
    server = ChannelServer(Loop().answer, Loop().leave)
    with pytest.raises(SpillwayError, match="use `spillway run`"):
        request_query_change(str(server.path), "counts", None, only_check=False)
    server.close()


def test_a_change_of_a_flow_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="is it running"):
        request_change(str(tmp_path / "nobody"), "gold.delay", "1s")


# -- with the dispatcher behind it


def dispatcher(slots: int = 1) -> Dispatcher:
    clock = WallClock()
    control = ClassControl(
        {"gold": ClassTerms(priority=1, target=TARGET)},
        "dilos",
        slots=slots,
        machine=1.0,
        cycle_periods=1,
        now_s=clock.now_s(),
    )
    return Dispatcher(control, clock, lambda decided: None)


def asks(server: ChannelServer, query: str, wait_s: float) -> socket.socket:
    """A connection whose question is on its way."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(server.path))
    line = {
        "query": query,
        "class_name": "gold",
        "time_s": 0.0,
        "offered_tuples": 0,
        "admitted_tuples": 0,
        "shed_tuples": 0,
        "completed_tuples": 0,
        "backlog": {"pending_tuples": 5},
        "wait_s": wait_s,
    }
    connection.sendall(json.dumps(line).encode() + b"\n")
    return connection


def said(connection: socket.socket) -> bool:
    connection.settimeout(60.0)
    return bool(json.loads(connection.makefile("rb").readline())["may_start"])


def test_a_query_that_breaks_off_while_it_waits_keeps_nobody_from_the_slot() -> None:
    desk = dispatcher()
    turns = desk.control.turns
    with serving(desk) as server:
        running = asks(server, "running", 0.0)
        assert said(running)
        broken = asks(server, "broken", 10.0)
        until(lambda: turns.is_asking("broken"))
        broken.close()
        patient = asks(server, "patient", 10.0)
        until(lambda: turns.is_asking("patient"))
        running.close()
        assert said(patient)
        patient.close()
        until(lambda: turns.idle)


def test_a_query_that_breaks_off_and_asks_again_gets_its_turn_and_keeps_it() -> None:
    desk = dispatcher()
    turns = desk.control.turns
    with serving(desk) as server:
        running = asks(server, "running", 0.0)
        assert said(running)
        broken = asks(server, "q", 1.0)
        until(lambda: turns.is_asking("q"))
        broken.close()
        again = asks(server, "q", 10.0)
        time.sleep(0.05)
        running.close()
        assert said(again)
        time.sleep(1.1)  # by now the thread of the broken connection has given up as well
        assert turns.is_running("q")
        assert not said(asks(server, "other", 0.0))
        again.close()
        until(lambda: turns.idle)


def test_a_flow_that_drains_answers_those_who_wait() -> None:
    desk = dispatcher()
    with serving(desk) as server:
        running = asks(server, "running", 0.0)
        assert said(running)
        waiting = asks(server, "waiting", 2.0)
        until(lambda: desk.control.turns.is_asking("waiting"))
        assert not desk.drain(wait_s=0.0)
        running.close()
        assert desk.drain(wait_s=60.0)
        assert not said(waiting)
        assert not said(asks(server, "late", 0.1))
        assert desk.drain(wait_s=0.0)
