"""What is fuzzed: each target gets one input and must take it, or refuse it in the house form."""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import typer

from fuzz import seeds
from fuzz.live import Case, Channel, body, control_log, file_in, invoke, words_of_commands
from fuzz.mutations import PIECES, bytes_of, json_of, lines_of, text_of
from spillway.check.flow_file import load_flow
from spillway.check.plan import plan_of
from spillway.errors import SpillwayError
from spillway.flow.types import spark_type
from spillway.gate.offsets import decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.shedders.expressions import columns_of, evaluate
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


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """`make` draws an input and says what to do with it, in a folder of its own."""

    name: str
    share: int
    make: Callable[[random.Random, Path], Case]


def _flow(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, seeds.flows())
    path = file_in(folder, "f.yaml", data)
    return data, lambda: plan_of(load_flow(path))


def _sql(rng: random.Random, folder: Path) -> Case:
    sql = text_of(rng, seeds.SQL)
    path = file_in(folder, "f.yaml", FLOW.format(sql=json.dumps(sql)).encode("utf-8", "replace"))
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
    path = str(file_in(folder, "l.jsonl", data))
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
        file_in(checkpoint / "offsets", name, data)
        file_in(checkpoint / "commits", name, b"v1\n{}\n")
        texts.append(data)
    return texts, lambda: invoke("offsets", str(checkpoint))


def _journal(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.journal()))
    path = file_in(folder, "journal.jsonl", data)

    def run() -> None:
        read_hours(path)
        invoke("replay", str(path), "--manager", rng.choice(("predictive", "pid", "ctrl")))

    return data, run


def _record(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.record()))
    path = file_in(folder, "record.jsonl", data)
    return data, lambda: invoke("replay", str(path))


def _instances(rng: random.Random, folder: Path) -> Case:
    data = lines_of(rng, list(seeds.instances()))
    path = file_in(folder, "instances/q.jsonl", data)

    def run() -> None:
        store = InstanceStore(path)
        store.active()
        store.version()
        invoke("instances", "list", "q", "--folder", str(folder), "--json")
        add_instances(store, "q", [{"key": "3", "size": "10 s"}])

    return data, run


def _csv(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, seeds.CSV)
    path = file_in(folder, "i.csv", data)
    return data, lambda: load_instances(Template.parse("q", seeds.TEMPLATE), path)


def _sink_log(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, (seeds.SINK_LOG,))
    name = rng.choice(("0", "0", "0.compact", "²", "٣.compact"))
    file_in(folder, f"_spark_metadata/{name}", data)
    return data, SinkIndex(str(folder)).refresh


def _dead_letters(rng: random.Random, folder: Path) -> Case:
    data = bytes_of(rng, ('{"malformed": 2, "lost": 1, "intervals": [1, 0]}\n' + "\0" * 16,))
    file_in(folder, "count-0.state", data)
    return data, lambda: dead_letter_totals(folder)


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
        "commands": (6, words_of_commands),
        "control": (5, control_log),
        "body": (3, body),
        "channel": (5, channel.make),
    }
    try:
        yield [Fuzzed(name=n, share=s, make=make) for n, (s, make) in shares.items()], died
    finally:
        threading.excepthook = before
        channel.close()


ACCEPTED = (SpillwayError, typer.Exit)
