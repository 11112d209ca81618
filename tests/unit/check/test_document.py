"""What a flow file may hold: each refusal names file and line, in one line."""

import time
from pathlib import Path

import pytest

from spillway.check.document import MOST_NODES, read_document
from spillway.errors import SpillwayError


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "f.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    for n in range(1, levels):
        lines.append(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", ":4 repeats the key 'c', which stands in line 3"),
        ("a: 1\n'a': 2\n", ":2 repeats the key 'a'"),
        (laughs(10), ":6 is more than a flow file may hold"),
        ("a: &x [*x]\n", ":1 refers to &x inside of itself"),
        ("a: &x {b: {c: *x}}\n", ":1 refers to &x inside of itself"),
        ("a: *y\n", ":1 refers to &y, which is not there"),
        ("a: 1\nb: !foo c\n", ":2 has the tag !foo"),
        ("a: !!python/object/apply:os.system [ls]\n", ":1 has the tag !!python"),
        ("a: !!set {x}\n", ":1 has the tag !!set"),
        ("a: !!binary aGk=\n", ":1 has the tag !!binary"),
        ("a: " + "9" * 5000, ":1 has a number of 5000 characters"),
        ("a: -" + "9" * 5000 + ".5", ":1 has a number of"),
        ("a: .inf\n", ":1 has .inf"),
        ("a: -.INF\n", ":1 has -.INF"),
        ("a: .nan\n", ":1 has .nan"),
        ("a: 1.0e+999\n", ":1 has 1.0e+999"),
        ("a: 0x\n- b", ":2 is not YAML"),
        ('a: "\\0"\n', ":1 holds the control character"),
        ("a: b\x00c\n", ":1 holds the control character"),
        ('a: 1\n"b\\x1b[31m": 2\n', ":2 holds the control character"),
        (b"a: \xff\n", ":1 is no UTF-8 text (byte 0xff)"),
        ("a: " + "[" * 200 + "]" * 200, ":1 is nested too deeply"),
        ("a: " + "{b: " * 100_000, ":1 is nested too deeply"),
        ("? [1]\n: 2\n", ":1 has a key that is no text"),
        ("*a : 2\n", ":1 has a key that is no text"),
        ("a: 1\n---\nb: 2\n", ":2 begins a second document"),
        ("<<: 5\n", ":1 has a key '<<' whose value is no mapping"),
        ("- a\n", ":1 must be a mapping"),
        ("", ":1 must be a mapping"),
        ("# nothing\n", ":1 must be a mapping"),
        ("a: 'b\n", "is not YAML"),
        ("%YAML 9.9\n---\na: 1\n", "is not YAML"),
    ],
)
def test_what_yaml_can_do_and_a_flow_file_must_not_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    path = written(tmp_path, text)
    began_s = time.monotonic()
    with pytest.raises(SpillwayError) as caught:
        read_document(path)
    assert time.monotonic() - began_s < 60.0
    [line] = caught.value.problems
    assert line.startswith(f"{path}:")
    assert expected in line
    assert len(line) < 400 + len(str(path))


def test_texts_stay_as_they_are_written(tmp_path: Path) -> None:
    text = (
        "date: 2026-02-30\nmoment: 2026-01-31T12:00:00\ntime: 1:30\nno: 'no'\nkey: 007\n"
        "on: on\n1: one\nnothing:\nfloat: 1e3\nwhole: 1_000\nhex: 0x10\nbig: 1.5\n"
    )
    assert read_document(written(tmp_path, text)).value == {
        "date": "2026-02-30",
        "moment": "2026-01-31T12:00:00",
        "time": "1:30",
        "no": "no",
        "key": 7,
        "on": True,
        "1": "one",
        "nothing": None,
        "float": "1e3",
        "whole": 1000,
        "hex": 16,
        "big": 1.5,
    }


def test_aliases_and_merges_that_stay_small_are_welcome(tmp_path: Path) -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [{z: 9}, *b]}\nsame: *b\n"
    value = read_document(written(tmp_path, text)).value
    assert value["one"] == {"x": 1, "y": 3}
    assert value["two"] == {"x": 1, "y": 2, "z": 9}
    assert value["same"] == {"x": 1, "y": 2}


def test_a_block_of_text_has_the_lines_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "q:\n  sql: |\n    one\n    two\n  other: 'x\n    y'\n")
    document = read_document(path)
    assert document.where(("q", "sql"), 2) == f"{path}:4"
    assert document.where(("q", "sql")) == f"{path}:2"
    assert document.where(("q", "other"), 2) == f"{path}:5"
    assert document.where(("q", "missing")) == f"{path}:1"


def test_as_many_values_as_are_allowed_take_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, "a: [" + "x," * (MOST_NODES // 4) + "]\n")
    assert len(read_document(path).value["a"]) == MOST_NODES // 4


def test_a_folder_is_no_flow_file(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="cannot be read"):
        read_document(tmp_path)
