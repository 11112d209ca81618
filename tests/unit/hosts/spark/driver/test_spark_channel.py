import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spillway.clock import ManualClock
from spillway.hosts.spark.driver.channel import (
    LONGEST_RETRY_S,
    RETRY_S,
    ChannelClient,
    ChannelServer,
    Directive,
    GateReport,
)
from spillway.model import Backlog, BatchRecord, KeepFraction, Target

DIRECTIVE = Directive(
    target=Target(delay_s=2.0, statistic="p95"),
    action=KeepFraction(fraction=0.25),
    reason="overloaded",
)


def report(gate: str = "q/ticks", wait_s: float = 0.0) -> GateReport:
    return GateReport(
        gate=gate,
        class_name="gold",
        time_s=12.5,
        offered_tuples=10,
        admitted_tuples=6,
        shed_tuples=4,
        completed_tuples=6,
        delay_s=None,
        backlog=Backlog(pending_tuples=3, mean_age_s=0.5),
        batches=(BatchRecord(kept_tuples=6, scanned_tuples=10, duration_s=0.3, ended_s=12.4),),
        wait_s=wait_s,
    )


class Loop:
    """Answers like a control loop, and remembers."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.seen: list[GateReport] = []
        self.left: list[str] = []
        self.hold = hold

    def answer(self, gate_report: GateReport) -> Directive:
        self.seen.append(gate_report)
        if self.hold is not None:
            self.hold.wait(10.0)
        return DIRECTIVE

    def leave(self, gate: str) -> None:
        self.left.append(gate)


@contextmanager
def serving(loop: Loop) -> Iterator[ChannelServer]:
    server = ChannelServer(loop.answer, loop.leave)
    try:
        yield server
    finally:
        server.close()


def test_a_report_arrives_whole_and_so_does_the_directive() -> None:
    loop = Loop()
    with serving(loop) as server:
        client = ChannelClient(str(server.path), ManualClock())
        assert client.ask(report()) == DIRECTIVE
        assert client.ask(report()) == DIRECTIVE
    assert loop.seen == [report(), report()]


def test_only_the_owner_may_enter_the_folder_of_the_socket() -> None:
    with serving(Loop()) as server:
        assert server.path.parent.stat().st_mode & 0o077 == 0


def test_a_socket_in_an_open_folder_is_not_trusted() -> None:
    with serving(Loop()) as server:
        os.chmod(server.path.parent, 0o755)
        assert ChannelClient(str(server.path), ManualClock()).ask(report()) is None


def test_without_a_loop_the_gate_is_told_nothing_and_asks_again_later(tmp_path: Path) -> None:
    clock = ManualClock()
    client = ChannelClient(str(tmp_path / "nobody"), clock)
    assert client.ask(report()) is None
    loop = Loop()
    with serving(loop) as server:
        client._path = str(server.path)
        assert client.ask(report()) is None, "it must not hammer a dead loop"
        clock.advance(RETRY_S * 1.01)
        assert client.ask(report()) == DIRECTIVE


def test_a_loop_that_hangs_costs_a_bounded_wait() -> None:
    hold = threading.Event()
    with serving(Loop(hold)) as server:
        client = ChannelClient(str(server.path), ManualClock())
        started = time.monotonic()
        assert client.ask(report(wait_s=0.1)) is None
        assert time.monotonic() - started < 2.0
        hold.set()


def test_a_loop_that_goes_on_hanging_is_asked_ever_less_and_never_waited_for() -> None:
    hold, clock = threading.Event(), ManualClock()
    with serving(loop := Loop(hold)) as server:
        client = ChannelClient(str(server.path), clock)
        client.ask(report(wait_s=0.0))
        started = time.monotonic()
        for _ in range(300):
            clock.advance(0.1)
            assert client.ask(report(wait_s=5.0)) is None
        assert time.monotonic() - started < 3.0
        assert [seen.wait_s for seen in loop.seen] == [0.0] * len(loop.seen)
        assert 4 <= len(loop.seen) <= 7, "after 1, 2, 4, 8, 8 ... seconds"
        hold.set()
        clock.advance(LONGEST_RETRY_S + 0.1)
        assert client.ask(report(wait_s=5.0)) == DIRECTIVE
        assert client.ask(report(wait_s=5.0)) == DIRECTIVE
        assert loop.seen[-1].wait_s == 5.0


def test_the_loop_learns_when_a_gate_is_gone() -> None:
    loop = Loop()
    with serving(loop) as server:
        client = ChannelClient(str(server.path), ManualClock())
        client.ask(report(gate="q/a"))
        client.close()
        deadline = time.monotonic() + 5.0
        while not loop.left and time.monotonic() < deadline:
            time.sleep(0.005)
    assert loop.left == ["q/a"]


@pytest.mark.parametrize("garbage", [b"not json\n", b"{}\n"])
def test_garbage_on_the_channel_harms_nobody_else(garbage: bytes) -> None:
    import socket

    loop = Loop()
    with serving(loop) as server:
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stranger.connect(str(server.path))
        stranger.sendall(garbage)
        assert ChannelClient(str(server.path), ManualClock()).ask(report()) == DIRECTIVE
        stranger.close()
