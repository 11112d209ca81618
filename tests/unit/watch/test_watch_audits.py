"""The audit that grows with its ledger."""

import json
from pathlib import Path

from spillway.clock import ManualClock
from spillway.gate.offsets import Totals, encode
from spillway.lines import append, line_of
from spillway.testing import ToyLog, ToySpark, toy_source
from spillway.watch.audits import LedgerAudit, audit_of, sum_of, totals_at_end


def ledger_lines(count: int) -> list[bytes]:
    with toy_source(ToyLog(rate_per_s=2e4)):
        batches = ToySpark.over(ToyLog(), ManualClock(1000.0), delay="2s").batches(count)
    return [line_of(encode(batch)) for batch in batches]


def test_it_follows_and_says_what_it_has_seen(tmp_path: Path) -> None:
    path, lines = tmp_path / "q.s.jsonl", ledger_lines(12)
    audit = LedgerAudit(path)
    audit.look()
    assert audit_of([audit]).verdict == "no batch yet"
    append(path, *lines[:5])
    audit.look()
    assert (audit_of([audit]).verdict, audit_of([audit]).batches) == ("exact", 5)
    append(path, *lines[5:])
    audit.look()
    assert audit_of([audit]).batches == 12
    last = json.loads(lines[-1])["total"]
    assert sum_of([audit]).admitted == last["admitted"]


def test_its_end_is_known_without_reading_all_of_it(tmp_path: Path) -> None:
    path, lines = tmp_path / "q.s.jsonl", ledger_lines(12)
    assert totals_at_end(path) == Totals()
    append(path, *lines)
    assert totals_at_end(path).admitted == json.loads(lines[-1])["total"]["admitted"]
    append(path, b"{damaged")
    assert totals_at_end(path) == Totals()


def test_a_long_ledger_is_read_part_by_part(tmp_path: Path) -> None:
    path, lines = tmp_path / "q.s.jsonl", ledger_lines(10)
    append(path, *lines)
    audit = LedgerAudit(path)
    audit.look(most_lines=4)
    assert audit_of([audit]).verdict == "reading"
    audit.look(most_lines=4)
    audit.look(most_lines=4)
    assert audit_of([audit]).verdict == "exact"


def test_a_line_that_was_changed_is_found(tmp_path: Path) -> None:
    path, lines = tmp_path / "q.s.jsonl", ledger_lines(6)
    wrong = json.loads(lines[3])
    wrong["total"]["admitted"] += 1
    append(path, *lines[:3], line_of(wrong), *lines[4:])
    audit = LedgerAudit(path)
    audit.look()
    found = audit_of([audit])
    assert found.verdict == "not exact"
    assert found.problems


def test_a_missing_and_a_damaged_line_are_found(tmp_path: Path) -> None:
    path, lines = tmp_path / "q.s.jsonl", ledger_lines(6)
    append(path, *lines[:2], b"{damaged", *lines[3:])
    audit = LedgerAudit(path)
    audit.look()
    assert audit_of([audit]).verdict == "not exact"
    assert any("damaged" in problem for problem in audit.problems)
    assert any("no line" in problem for problem in audit.problems)
