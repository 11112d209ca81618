"""What is fuzzed of what runs: commands, control logs, HTTP bodies, the channel."""

import asyncio
import json
import random
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from httpx import ASGITransport, AsyncClient
from typer.testing import CliRunner

from fuzz import seeds
from fuzz.mutations import bytes_of, json_of, text_of
from spillway.check.flow_file import load_as_written
from spillway.classes.control import ClassControl, ClassTerms
from spillway.cli.app import app
from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.hosts.cluster.bodies import ASSIGNMENTS
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.coordinating import Coordinating
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.opening import Place, place_of
from spillway.hosts.spark.driver.channel import ChannelServer
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.model import Target
from spillway.watch.guard import Guard
from spillway.watch.service import Service
from spillway.watch.tokens import Token

sys.path.append(str(Path(__file__).parents[1] / "unit" / "watch"))
from virtual import VirtualWatch

Case = tuple[Any, Callable[[], object]]  # what to show, what to run


def invoke(*words: str) -> None:
    """A command, whose refusal comes out as it was raised."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def file_in(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# P is a place, T a text, N a number; what follows --folder and the like are options.
COMMANDS = (
    ("set", "gold.delay=T", "--folder", "P"),
    ("set", "T", "--folder", "P"),
    ("top", "P", "--once"),
    ("top", "http://T", "--once", "--token", "P"),
    ("report", "P", "--since", "T", "--until", "T", "--no-what-if"),
    ("report", "P", "--out", "P"),
    ("ledger", "P"),
    ("ledger", "P", "--checkpoint", "P", "--by", "T"),
    ("ledger", "P", "--positions", "N", "--flow", "P"),
    ("offsets", "P", "--topic", "T"),
    ("replay", "P", "--manager", "T", "--set", "T=N"),
    ("instances", "list", "T", "--folder", "P"),
    ("instances", "add", "q", "T=T", "--folder", "P"),
    ("instances", "remove", "q", "N", "--folder", "P"),
    ("backfill", "P", "--query", "T", "--from", "T", "--to", "T"),
    ("backfill", "P", "--query", "q", "--flow", "P", "--dry-run"),
    ("check", "P"),
    ("run", "P", "--duration", "T", "--listen", "T", "--keys", "P"),
    ("cluster", "check", "P"),
    ("cluster", "status", "P", "--json"),
    ("cluster", "audit", "P"),
    ("query", "add", "P", "--cluster", "P"),
    ("query", "change", "T", "--cluster", "P", "--sql", "P", "--partitions", "N"),
    ("node", "P", "--name", "T"),
)
NUMBERS = ("0", "-1", "nan", "inf", "1e999", "9" * 400, "0x10", "1.5", "\u0663", "")
TEXTS = ("gold.delay=1s", "2026-01-31T12:00:00", "1s", "q", "127.0.0.1:1", "off", "hour")


def words_of_commands(rng: random.Random, folder: Path) -> Case:
    places = _places(folder)
    words = [
        word.replace("N", rng.choice(NUMBERS)).replace("T", text_of(rng, TEXTS)[:200])
        if word != "P"
        else rng.choice(places)
        for word in rng.choice(COMMANDS)
    ]
    return words, lambda: invoke(*words)


def _places(folder: Path) -> tuple[str, ...]:
    """Where no command finds what it looks for."""
    file_in(folder, "channel", b"/nonexistent/control")
    file_in(folder, "journal.jsonl", b'{"v": 1}\n')
    file_in(folder, "watch", b"http://[red]:99999\n")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing")
    (folder / "empty").mkdir()
    binary = file_in(folder, "binary", bytes(range(256)))
    odd = ("nothing", "loop", "dangling", "empty", "binary/below", "x" * 300, "[red]")
    return (str(folder), str(binary), "", "\0", *(str(folder / name) for name in odd))


def control_log(rng: random.Random, folder: Path) -> Case:
    """A cluster's control log with damaged records: whoever reads it, and whoever leads by it."""
    records, lines = seeds.control(), []
    chosen = rng.randrange(len(records))
    file_in(folder, "flow.yaml", seeds.CLUSTER.encode())
    for folders in ("reports", "assignments"):
        for part in ("", "drafts", "snapshots"):
            (folder / "control" / folders / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    at = {"reports": 0, "assignments": 0}
    for number, (log, record) in enumerate(records):
        value = json_of(rng, record) if number == chosen else record
        data = json.dumps(value).encode("utf-8", "replace")
        if rng.random() < 0.05:
            data = bytes_of(rng, (json.dumps(record),))
        name = f"{at[log]:012d}" if rng.random() < 0.98 else rng.choice(("5", "x", "9" * 12))
        file_in(folder / "control" / log, name, data)
        at[log] += 1
        lines.append(data)
    (folder / "control").chmod(0o700)

    def run() -> None:
        file = folder / "flow.yaml"
        place = place_of(file, load_as_written(file))
        for words in (["--json"], []):
            with suppress(SpillwayError):
                invoke("cluster", "status", str(file), *words)
        with suppress(SpillwayError):
            Duties(node="node-1").read(_read(place), "l1")
        Coordinating(place, lambda said: None).step()

    return lines, run


def _read(place: Place) -> Latest:
    log = Latest(place.assignments(), ASSIGNMENTS)
    log.read_on()
    return log


def body(rng: random.Random, folder: Path) -> Case:
    """What is sent to a running flow over HTTP, behind the token."""
    kind, seed = rng.choice(BODIES)
    text = (
        json.dumps(json_of(rng, seed)) if rng.random() < 0.8 else text_of(rng, (json.dumps(seed),))
    )
    data = text.encode("utf-8", "replace")

    async def ask() -> None:
        async with AsyncClient(transport=ASGITransport(app=page().app), base_url=PAGE) as client:
            headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
            answer = await client.post(f"/api/{kind}", content=data, headers=headers)
            said = answer.json()
            assert answer.status_code < 500, said
            assert answer.status_code == 200 or str(said["error"]).isprintable()

    return data, lambda: asyncio.run(ask())


PAGE, SECRET = "http://127.0.0.1", "0123456789abcdef"
BODIES: tuple[tuple[str, Any], ...] = (
    ("set", {"gold.delay": "p99 2s", "bronze.priority": "2"}),
    ("set", {"control.policy": "dilos", "gold.manager": "pid", "bronze.min_keep": 0.5}),
    ("instances", {"query": "q", "add": [{"key": 1, "size": "10 s"}], "remove": [0, 3]}),
)


@cache
def page() -> Service:
    """Of one flow in virtual time, for all inputs."""
    watched = VirtualWatch(Path(tempfile.mkdtemp(prefix="fuzz-page-")))
    watched.advance(20.0)
    token = Token(name="me", secret=SECRET, may_change=True)
    return Service(watched, Guard(tokens=(token,), open_to_read=True))


class Channel:
    """A server with what stands behind it in a run, and a gate that knows how to ask."""

    def __init__(self) -> None:
        terms = {"gold": ClassTerms(priority=2, target=Target(delay_s=2.0))}
        control = ClassControl(
            terms, "dilos", slots=2, machine=2.0, cycle_periods=2, now_s=WallClock().now_s()
        )
        self.dispatcher = Dispatcher(control, WallClock(), lambda decided: None)
        self.server = ChannelServer(self.dispatcher.answer, self.dispatcher.leave)
        self.asked = 0

    def make(self, rng: random.Random, folder: Path) -> Case:
        value = json_of(rng, seeds.report())
        text = json.dumps(value) if rng.random() < 0.8 else text_of(rng, (json.dumps(value),))
        if rng.random() < 0.1:
            text = json.dumps(json_of(rng, {"set": "gold.delay", "to": "1s"}))
        data = text.encode("utf-8", "replace") + b"\n"
        return data, lambda: self.ask(data)

    def ask(self, data: bytes) -> None:
        self.asked += 1
        self.send(data, 0.002)
        if self.asked % 20 == 0:
            self.dispatcher.period_ended()
            good = json.dumps({**seeds.report(), "query": "good", "wait_s": 0.0}).encode() + b"\n"
            assert b"may_start" in self.send(good, 5.0), "the channel does not answer any more"

    def send(self, data: bytes, wait_s: float) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(wait_s)
            connection.connect(str(self.server.path))
            try:
                connection.sendall(data)
                return connection.recv(1 << 16)
            except OSError:
                return b""

    def close(self) -> None:
        self.server.close()
