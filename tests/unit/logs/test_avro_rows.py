"""Avro in the Confluent wire format, by the reference: rows, malformed records, schemas."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from avro_records import COLUMNS, NUMBER, ROW, SCHEMA, written
from spillway.errors import SpillwayError
from spillway.logs.avro_plans import UnreadableError, plan_of
from spillway.logs.avro_rows import AvroDecoder
from spillway.logs.avro_schemas import Schemas
from spillway.logs.catalog import open_log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bid.avsc"
    path.write_text(json.dumps(SCHEMA))
    return path


def in_file(file: Path) -> Schemas:
    return Schemas.given(f"{NUMBER}={file}", None, 1.0)


def reason(value: bytes | None, schemas: Schemas, columns: pa.Schema = COLUMNS) -> str:
    found = AvroDecoder(columns, schemas).decode([value])
    assert found.rows.num_rows + len(found.bad) == 1
    return found.bad.get(0, "")


def test_fields_become_columns_by_their_names(file: Path) -> None:
    found = AvroDecoder(COLUMNS, in_file(file)).decode([written(ROW)])
    assert found.rows.to_pylist() == [
        {
            "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "local": datetime(2026, 1, 31, 12, 0, 0, 5),
            "price": 2.5,
            "kind": "web",
            "n": -5,
            "day": date(2026, 1, 31),
            "yes": True,
            "s": "ß and \U0001f600",
            "missing": None,
        }
    ]


def test_malformed_records_are_named_one_by_one(file: Path) -> None:
    schemas, good = in_file(file), written(ROW)
    assert reason(good, schemas) == ""
    assert reason(None, schemas) == "the record has no value"
    assert "does not begin with zero" in reason(b"", schemas)
    assert "does not begin with zero" in reason(b'{"n": 1}', schemas)
    assert reason(written(ROW, number=8), schemas) == "schema 8 is not known"
    assert reason(good + b"\0", schemas) == f"the record is longer than schema {NUMBER} says"
    for length in range(5, len(good)):
        assert "does not fit schema" in reason(good[:length], schemas), "cut inside of a text too"
    large = written({**ROW, "at": 1 << 60})
    assert "no timestamp[us, tz=UTC]" in reason(large, schemas)
    required = pa.schema([pa.field("maybe", pa.float64(), nullable=False)])
    assert reason(written({**ROW, "maybe": None}), schemas, required) == "field 'maybe' is missing"


def test_good_records_stand_beside_malformed_ones(file: Path) -> None:
    values = [written(ROW), b"bad", written({**ROW, "n": 7})]
    found = AvroDecoder(COLUMNS, in_file(file)).decode(values)
    assert (found.good, list(found.bad)) == ([0, 2], [1])
    assert found.rows.column("n").to_pylist() == [-5, 7]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is no Avro schema"),
        ('"long"', "is not of records"),
        ({"type": "record", "name": "A", "fields": [{"name": "n", "type": "string"}]}, "field 'n'"),
        (
            {"type": "record", "name": "A", "fields": [{"name": "n", "type": ["int", "long"]}]},
            "as union",
        ),
        (
            {
                "type": "record",
                "name": "A",
                "fields": [
                    {"name": "n", "type": "long"},
                    {"name": "next", "type": ["null", "A"]},
                ],
            },
            "is recursive",
        ),
        (
            {
                "type": "record",
                "name": "A",
                "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}],
            },
            "takes no bytes",
        ),
    ],
)
def test_schemas_that_cannot_be_read_say_why(schema: Any, why: str) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(UnreadableError, match=why):
        plan_of(text, pa.schema([("n", pa.int64())]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "say where the schemas are"),
        ({"avro_schemas": "1=a", "registry": "http://x"}, "say where the schemas are"),
        ({"avro_schemas": "bids.avsc"}, "NUMBER=FILE"),
        ({"avro_schemas": "1=/nowhere/bids.avsc"}, "cannot be read"),
        ({"registry": "host:8081"}, "http or https"),
    ],
)
def test_options_that_name_no_schemas_are_refused(options: dict[str, str], said: str) -> None:
    given = {"source": "kafka", "topic": "t", "kafka.bootstrap.servers": "h:1", "decode": "avro"}
    with pytest.raises(SpillwayError, match=said):
        open_log({**given, **options}, COLUMNS)


def test_columns_that_no_field_becomes_are_refused(file: Path) -> None:
    with pytest.raises(SpillwayError, match="column 'x' is binary"):
        AvroDecoder(pa.schema([("x", pa.binary())]), in_file(file))


class _Registry(BaseHTTPRequestHandler):
    asked: list[str]
    fails: int

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if type(self).fails > 0:
            type(self).fails -= 1
            self.send_error(503)
        elif self.path == f"/schemas/ids/{NUMBER}":
            body = json.dumps({"schema": json.dumps(SCHEMA)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[tuple[str, type[_Registry]]]:
    handler = type("Handler", (_Registry,), {"asked": [], "fails": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", handler
    server.shutdown()
    server.server_close()


def test_a_registry_is_asked_once_for_a_number(registry: tuple[str, type[_Registry]]) -> None:
    url, handler = registry
    handler.fails = 1  # it is asked again
    decoder = AvroDecoder(COLUMNS, Schemas.given(None, url, 60.0))
    values = [written(ROW), written(ROW, number=8)] * 3
    for _ in range(2):
        found = decoder.decode(values)
        assert (found.good, list(found.bad)) == ([0, 2, 4], [1, 3, 5])
    assert handler.asked == [f"/schemas/ids/{n}" for n in (NUMBER, NUMBER, 8)]


def test_a_registry_that_stays_silent_ends_the_read(
    registry: tuple[str, type[_Registry]],
) -> None:
    url, handler = registry
    handler.fails = 1_000_000
    with pytest.raises(SpillwayError, match="503"):
        AvroDecoder(COLUMNS, Schemas.given(None, url, 0.1)).decode([written(ROW)])
