"""What is fuzzed: each target gets one input and must take it, or refuse it in the house form."""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer
from typer.testing import CliRunner

from fuzz import seeds
from fuzz.mutations import PIECES, bytes_of, json_of, lines_of, text_of
from spillway.check.flow_file import load_flow
from spillway.check.plan import plan_of
from spillway.classes.control import ClassControl, ClassTerms
from spillway.cli.app import app
from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.flow.types import spark_type
from spillway.gate.offsets import decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.shedders.expressions import columns_of, evaluate
from spillway.hosts.spark.driver.channel import ChannelServer
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.planner.starts import positions_named
from spillway.journal.summary import read_hours
from spillway.logs import catalog
from spillway.logs.dead_letters import dead_letter_totals
from spillway.logs.sink_index import SinkIndex
from spillway.logs.stream_options import own_options
from spillway.model import Target, parse_duration_s
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import add_instances, load_instances
from spillway.templates.templates import Template

FLOW = """\
streams: {{s: {{source: synthetic, event_time: event_time}}}}
classes: {{c: {{delay: 2s}}}}
queries: {{q: {{class: c, sql: {sql}}}}}
"""
ROWS = pa.table({"price": [1.0, 2.0], "volume": [3.0, None]})
Case = tuple[Any, Callable[[], object]]  # what to show, what to run


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """`make` draws an input and says what to do with it, in a folder of its own."""

    name: str
    share: int
    make: Callable[[random.Random, Path], Case]


def invoke(*words: str) -> None:
    """A command, whose refusal comes out as it was raised."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _flow(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, seeds.flows())
    path = _file(folder, "f.yaml", data)
    return data, lambda: plan_of(load_flow(path))


def _sql(rng: random.Random, folder: Path) -> Case:
    sql = text_of(rng, seeds.SQL)
    path = _file(folder, "f.yaml", FLOW.format(sql=json.dumps(sql)).encode("utf-8", "replace"))
    return sql, lambda: plan_of(load_flow(path))


def _utility(rng: random.Random, folder: Path) -> Case:
    text = text_of(rng, seeds.UTILITIES)

    def run() -> None:
        if set(columns_of(text)) <= {"price", "volume"}:
            evaluate(text, ROWS)

    return text, run


def _words(rng: random.Random, folder: Path) -> Case:
    ask, given = rng.choice(
        (
            (spark_type, seeds.TYPES),
            (Target.parse, seeds.DURATIONS),
            (parse_duration_s, seeds.DURATIONS),
            (lambda text: positions_named(text), ('{"t": {"0": 42, "1": -1}}', "latest")),
        )
    )
    text = text_of(rng, given)
    return text, partial(ask, text)


def _options(rng: random.Random, folder: Path) -> Case:
    given = dict(rng.choice(seeds.OPTIONS))
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(given))
        if rng.random() < 0.8:
            given[name] = text_of(rng, (given[name],))
        else:
            given[rng.choice(PIECES)[:50] or name] = given.pop(name)
    return given, lambda: _opened(given)


def _opened(given: Mapping[str, str]) -> None:
    """As `format("spillway")` reads them; nothing is connected to."""
    own_options(given)
    GateOptions.parse(given)
    log = catalog.open_log(catalog.pinned(given, 1000.0), None)
    if given["source"] in catalog.STARTED:
        log.columns()
        log.extent(1000.0)


def _ledger(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.offsets()))
    path = str(_file(folder, "l.jsonl", data))
    words = rng.choice(((), ("--json",), ("--positions", "3")))
    return data, lambda: invoke("ledger", path, *words)


def _offset(rng: random.Random, folder: Path) -> Case:
    value = json_of(rng, rng.choice(seeds.offsets()))
    return value, lambda: encode(decode(value))


def _checkpoint(rng: random.Random, folder: Path) -> Case:
    checkpoint, texts = folder / "checkpoint", []
    for batch, offset in enumerate(seeds.offsets()[:3]):
        text = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset)}\n'
        data = bytes_of(rng, (text,)) if rng.random() < 0.5 else text.encode()
        name = str(batch) if rng.random() < 0.95 else rng.choice(("x", "٣", "7" * 60, "1.tmp"))
        _file(checkpoint / "offsets", name, data)
        _file(checkpoint / "commits", name, b"v1\n{}\n")
        texts.append(data)
    return texts, lambda: invoke("offsets", str(checkpoint))


def _journal(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.journal()))
    path = _file(folder, "journal.jsonl", data)

    def run() -> None:
        read_hours(path)
        invoke("replay", str(path), "--manager", rng.choice(("predictive", "pid", "ctrl")))

    return data, run


def _record(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.record()))
    path = _file(folder, "record.jsonl", data)
    return data, lambda: invoke("replay", str(path))


def _instances(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.instances()))
    path = _file(folder, "instances/q.jsonl", data)

    def run() -> None:
        store = InstanceStore(path)
        store.active()
        store.version()
        invoke("instances", "list", "q", "--folder", str(folder), "--json")
        add_instances(store, "q", [{"key": "3", "size": "10 s"}])

    return data, run


def _csv(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, seeds.CSV)
    path = _file(folder, "i.csv", data)
    return data, lambda: load_instances(Template.parse("q", seeds.TEMPLATE), path)


def _sink_log(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, (seeds.SINK_LOG,))
    name = rng.choice(("0", "0", "0.compact", "²", "٣.compact"))
    _file(folder, f"_spark_metadata/{name}", data)
    return data, SinkIndex(str(folder)).refresh


def _dead_letters(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, ('{"malformed": 2, "lost": 1, "intervals": [1, 0]}\n' + "\0" * 16,))
    _file(folder, "count-0.state", data)
    return data, lambda: dead_letter_totals(folder)


def _words_of_commands(rng: random.Random, folder: Path) -> Case:
    words = rng.choice(
        (
            ["set", text_of(rng, ("gold.delay=1s",)), "--folder", str(folder)],
            ["replay", str(folder / "j"), "--manager", "pid", "--set", text_of(rng, ("a=1",))],
            ["instances", "add", "q", text_of(rng, ("key=1",)), "--folder", str(folder)],
            ["check", text_of(rng, ("flow.yaml",))[:200]],
            ["ledger", text_of(rng, ("ledger.jsonl",))[:200]],
        )
    )
    _file(folder, "channel", bytes_of(rng, ("/nonexistent/control",)))
    return words, lambda: invoke(*words)


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


@contextmanager
def targets() -> Iterator[tuple[list[Fuzzed], list[str]]]:
    """All of them, and what threads of the channel died of."""
    died: list[str] = []
    before = threading.excepthook

    def died_of(found: threading.ExceptHookArgs) -> None:
        died.append(f"{found.exc_type.__name__}: {found.exc_value}")

    threading.excepthook = died_of
    channel = Channel()
    shares: dict[str, tuple[int, Callable[[random.Random, Path], Case]]] = {
        "flow": (18, _flow),
        "sql": (14, _sql),
        "utility": (8, _utility),
        "words": (8, _words),
        "options": (12, _options),
        "ledger": (8, _ledger),
        "offset": (8, _offset),
        "checkpoint": (4, _checkpoint),
        "journal": (5, _journal),
        "record": (4, _record),
        "instances": (5, _instances),
        "csv": (4, _csv),
        "sink log": (2, _sink_log),
        "dead letters": (2, _dead_letters),
        "commands": (3, _words_of_commands),
        "channel": (5, channel.make),
    }
    try:
        yield [Fuzzed(name=n, share=s, make=make) for n, (s, make) in shares.items()], died
    finally:
        threading.excepthook = before
        channel.close()


ACCEPTED = (SpillwayError, typer.Exit)
