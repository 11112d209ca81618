"""Flow files that were "right" and could not run, ended in a trace, or did not end at all."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.errors import SpillwayError

FLOW = """\
streams:
  ticks:
    source: synthetic
    options: {rate: 1000}
    event_time: event_time
  raw:
    source: kafka
    options: {topic: t, kafka.bootstrap.servers: 'h:9092'}
    columns: {symbol: string, price: double, ts: timestamp}
    event_time: ts
classes:
  gold: {priority: 6, delay: p99 2s}
queries:
  a:
    class: gold
    sql: |
      SELECT window(event_time, '10 seconds') AS period, key,
             sum(value) AS total
      FROM ticks
      GROUP BY window(event_time, '10 seconds'), key
  b:
    class: gold
    sql: SELECT symbol, price FROM raw WHERE price > 3
    sink: {type: parquet, path: out}
"""
UTILITY = "shedder: utility\n    utility: "
SQL_B = "SELECT symbol, price FROM raw WHERE price > 3"
SINK_B = "type: parquet, path: out"
WINDOW = "count(*) AS n FROM raw GROUP BY window(ts, '{a}')"
SLIDES = WINDOW.format(a="10 seconds', '20 seconds")
DEEP = "(" * 3000 + "1" + ")" * 3000

BROKEN = [
    ("sum(value)", "sum(valeu)", 18, "line 2: there is no column 'valeu': did you mean 'value'?"),
    ("sum(value)", "smu(value)", 18, "smu() is no function of Spark SQL: did you mean sum?"),
    ("sum(value)", "sum(event_time)", 18, "which is timestamp: it takes numbers"),
    ("sum(value)", "value", 18, "column 'value' is neither in GROUP BY nor in an aggregate"),
    ("FROM ticks", "FROM tciks", 19, "unknown stream 'tciks': did you mean 'ticks'?"),
    ("event_time: ts\n", "event_time: tss\n", 10, "unknown column 'tss': did you mean 'ts'?"),
    ("event_time: ts\n", "event_time: price\n", 10, "'price', which is double"),
    ("timestamp}", "timestmp}", 9, "did you mean 'timestamp'?"),
    ("symbol: string", "Price: string", 9, "are one name to Spark"),
    ("symbol: string", "symbol: [string]", 9, "columns.symbol is a list: it must be a text"),
    ("symbol: string", "'sym bol': string", 9, "it must be a name"),
    (", kafka.bootstrap.servers: 'h:9092'", "", 8, "'kafka.bootstrap.servers' is missing"),
    ("topic: t", "topic: t, decode: avro", 8, "say where the schemas are"),
    ("price > 3", "price > ", 23, "cannot be parsed at line 1"),
    ("price > 3", "pricee > 3", 23, "did you mean 'price'?"),
    (
        SQL_B,
        "SELECT symbol FROM raw, ticks x, ticks y WHERE value > 1",
        23,
        "in x and y: say which",
    ),
    (SQL_B, "DELETE FROM raw", 23, "must be a SELECT"),
    (SQL_B, "SELECT symbol FROM raw; SELECT 1", 23, "must be a SELECT"),
    (SQL_B, '"SELECT \'abc FROM raw"', 23, "is not closed"),
    (SQL_B, f"SELECT {DEEP} FROM raw", 23, "is nested too deeply"),
    (SQL_B, f"SELECT 1 FROM raw {'JOIN raw b ' * 40}", 23, "40 joins without ON or USING"),
    (SQL_B, f"SELECT {'NOT ' * 3000} true FROM raw", 23, "is nested too deeply"),
    (SQL_B, f"SELECT {'+'.join(['1'] * 3000)} FROM raw", 23, "is nested too deeply"),
    (SQL_B, "SELECT symbol, count(*) AS n FROM raw GROUP BY symbol", None, ""),  # has a watermark
    (SQL_B, "'" + "x" * 200_000 + "'", 23, "at most 100000 characters"),
    ("rate: 1000", "rate: -5", 4, "option 'rate' is '-5'"),
    ("rate: 1000", "rate: [1000]", 4, "options.rate is a list"),
    ("rate: 1000", "rate: {a: 1}", 4, "options.rate is a mapping"),
    ("rate: 1000", "rate: ~", 4, "options.rate is empty"),
    ("rate: 1000", "rate: .inf", 4, ".inf, which is no number"),
    ("rate: 1000", "rate: inf", 4, "option 'rate' is 'inf'"),
    ("rate: 1000", "rate: nan", 4, "option 'rate' is 'nan'"),
    ("rate: 1000", "rate: 1e400", 4, "option 'rate' is '1e400'"),
    ("rate: 1000", f"rate: {'9' * 5000}", 4, "a number of 5000 characters"),
    ("rate: 1000", f"rate: '{'9' * 5000}'", 4, "option 'rate' is '999"),
    ("rate: 1000", "partitions: abc", 4, "'partitions' is 'abc': it must be a whole number"),
    ("rate: 1000", "partitions: 1000000000", 4, "from 1 to 10000"),
    ("rate: 1000", "workload: wbe", 4, "did you mean 'web'?"),
    ("rate: 1000", "workload: web, rate: '0:1,5:2'", 4, "option 'rate' is '0:1,5:2'"),
    ("rate: 1000", "columns: 'id positon'", 4, "did you mean 'position'?"),
    ("rate: 1000", f"columns: 'a{' ' * 50_000}!'", 4, "'columns' cannot be read"),
    ("rate: 1000", "startingOffsets: latst", 4, "it must be latest, earliest or"),
    ("rate: 1000", "max_shed: 20", 4, "max_shed is '20'"),
    ("rate: 1000", "start: 2026-01-32", 4, "epoch seconds or ISO 8601"),
    ("rate: 1000", "start: 1e300", 4, "epoch seconds or ISO 8601"),
    ("rate: 1000", "tuples: 1, Tuples: 2", 4, "is the same option as tuples"),
    ("rate: 1000", "manager: predictiv", 4, "say it as classes.NAME.manager"),
    ("p99 2s}", "2s, manager: predictiv}", 12, "did you mean 'predictive'?"),
    ("p99 2s}", "2s, manager: {law: pid, setpoint: .nan}}", 12, ".nan"),
    ("p99 2s", "50us", 12, "at least 1ms"),
    ("p99 2s", "2024-13-45", 12, "is '2024-13-45': it must be"),
    ("p99 2s", "9" * 50_000 + "s", 12, "it must be a positive number with a unit"),
    ("p99 2s", "!foo 2s", 12, "the tag !foo"),
    ("p99 2s", "[2s]", 12, "classes.gold.delay is a list: it must be a text"),
    ("p99 2s", '"2s\\0"', 12, "control character"),
    ("priority: 6", "priority: 1.5", 12, "it must be a whole number"),
    ("priority: 6", "priority: 6, priority: 7", 12, "repeats the key 'priority'"),
    ("priority: 6", "lend: 1.5", 12, "at most 1"),
    ("  b:\n", "  a:\n", 21, "repeats the key 'a', which stands in line 14"),
    ("  b:\n", "  '[red]b[/red]':\n", 21, "queries.[red]b[/red] is '[red]b[/red]'"),
    ("  b:\n", "  ':smile:':\n", 21, "queries.:smile: is ':smile:'"),
    ("  b:\n", f"  {'b' * 300}:\n", 21, "it must be a name"),
    ("class: gold", "class: [gold]", 15, "class is a list: it must be a text"),
    (SINK_B, "type: [parquet]", 24, "sink.type is a list: it must be a text"),
    (SINK_B, "type: parquet, path: [a, b]", 24, "path is a list: it must be text"),
    (SINK_B, "type: python, call: 'x'", 24, "must be text such as module:function"),
    (SINK_B, "type: kafka, brokers: h, topic: t, key: sym", 24, "did you mean 'symbol'?"),
    (f"{SINK_B}}}", f"{SINK_B}}}\n    mode: update", 25, "sink parquet can only append"),
    ("source: kafka", "source: kakfa", 7, "did you mean 'kafka'?"),
    ("event_time: event_time", f"{UTILITY}abs(value, key)", 6, "abs has 2 arguments: it takes 1"),
    ("event_time: event_time", f"{UTILITY}intervals(value, 1, 2)", 6, "low, high and weight"),
    ("event_time: event_time", f"{UTILITY}value ** 2", 6, "is not understood"),
    ("event_time: event_time", f"{UTILITY}valu + 1", 6, "did you mean 'value'?"),
    ("event_time: event_time", f"{UTILITY}\"value + 'a'\"", 6, "a text"),
    ("event_time: event_time", f"{UTILITY}'{'-' * 5000}1'", 6, "nested so deeply"),
    ("event_time: event_time", f"{UTILITY}'{'(' * 4000}1{')' * 4000}'", 6, "not understood"),
    ("event_time: event_time", f"{UTILITY}'{'9' * 5000}'", 6, "is not understood"),
    ("event_time: event_time", "shedder: key\n    key: kee", 6, "did you mean 'key'?"),
    ("queries:\n", "spark: {master: localhost}\nqueries:\n", 13, "spark.master is 'localhost'"),
    ("queries:\n", "control: {period: 0s}\nqueries:\n", 13, "control.period is '0s'"),
    ("queries:\n", "control: {polcy: none}\nqueries:\n", 13, "did you mean 'policy'?"),
    ("options: {rate: 1000}", "options: &x {rate: *x}", 4, "refers to &x inside of itself"),
    # What a newcomer types.
    (SQL_B, "SELECT symbol, FROM raw", 23, "a comma stands before FROM"),
    (SQL_B, "SELECT symbol FROM raw ORDER BY symbol", 23, "ORDER BY: a stream has no end"),
    (SQL_B, "SELECT symbol FROM raw HAVING price > 3", 23, "HAVING without GROUP BY: write WHERE"),
    (SQL_B, "SELECT symbol.x FROM raw", 23, "'symbol' is string: it has no fields"),
    (SQL_B, "SELECT price[0] FROM raw", 23, "which is double: it has no elements"),
    (SQL_B, "SELECT symbol FROM raw WHERE price", 23, "compare it with something"),
    (SQL_B, "SELECT symbol FROM raw WHERE price > 'abc'", 23, "'abc': that is no number"),
    (SQL_B, "SELECT * EXCEPT (sym) FROM raw", 23, "did you mean 'symbol'?"),
    (SQL_B, "SELECT rank() OVER (ORDER BY price) FROM raw", 23, "all rows of a window over rows"),
    (SQL_B, f"SELECT {WINDOW.format(a='10 secs ago')}", 23, "it takes a duration, such as"),
    (SQL_B, f"SELECT {SLIDES}", 23, "a slide that is longer than the window"),
    ("    event_time: ts\n", "    watermark: 10s\n", 10, "is how late event times may be"),
    ("h:9092", "h:port", 8, "which is no host:port"),
    ("topic: t", "topic: t, kafka.sasl.mechansim: PLAIN", 8, "No such configuration property"),
    ("topic: t", "topic: t, kafka.security.protocol: SSLL", 8, "Invalid value"),
    ("topic: t", "topic: t, kafka.auto.offset.reset: latest", 8, "say it as startingOffsets"),
    (SINK_B, "type: kafka, brokers: 'h:p', topic: t", 24, "which is no host:port"),
    ("priority: 6", "lend: yes", 12, "it must be a number"),
    ("queries:\n", "cluster: {control: {type: kafka}}\nqueries:\n", 13, "brokers is missing"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"), BROKEN, ids=[f"{n}" for n in range(len(BROKEN))]
)
def test_a_broken_flow_file_is_told_in_a_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: int | None, expected: str
) -> None:
    assert old in FLOW
    path = tmp_path / "f.yaml"
    path.write_text(FLOW.replace(old, new, 1))
    began_s = time.monotonic()
    result = CliRunner().invoke(app, ["check", str(path)])
    assert time.monotonic() - began_s < 60.0
    if line is None:
        assert result.exit_code == 0, result.exception
        return
    assert isinstance(result.exception, SpillwayError), result.exception
    first = result.exception.problems[0]
    assert expected in first
    assert len(first) < 1000
    assert first.removeprefix(f"{path}:").replace(":", " ").split()[0] == str(line)


def test_the_command_ends_with_2_and_nothing_but_lines_with_places(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(FLOW.replace("sum(value)", "smu(valeu)", 1))
    command = [sys.executable, "-m", "spillway.cli.app", "check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(f"{path}:18: " in line for line in lines)


def test_several_problems_are_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(FLOW.replace("rate: 1000", "rate: x").replace("class: gold", "class: glod"))
    result = CliRunner().invoke(app, ["check", str(path)])
    assert isinstance(result.exception, SpillwayError)
    places = [problem.split(": ")[0] for problem in result.exception.problems]
    assert places == [f"{path}:15", f"{path}:22", f"{path}:4"]


def test_the_flow_itself_is_right(tmp_path: Path) -> None:
    path = tmp_path / "[red]f.yaml"
    path.write_text(FLOW)
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 0
    assert "[red]f.yaml is right" in result.output.replace("\n", "")
