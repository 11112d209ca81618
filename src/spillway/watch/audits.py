"""The audit of ledgers that grow: a bounded part of them at every look."""

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.gate.ledger import Life, LifeAudit
from spillway.gate.offsets import Totals, decode
from spillway.lines import lines_in, whole_lines
from spillway.watch.views import Audit

LINES_AT_ONCE = 100  # of one ledger and look: a tenth of a millisecond each
_PROBLEMS_SHOWN = 5
_LAST_BYTES = 1 << 20


def totals_at_end(path: Path) -> Totals:
    """What its last line says, without reading the others."""
    with suppress(OSError, ValueError, RecursionError, SpillwayError):
        *_, last = whole_lines(path, _LAST_BYTES)
        return decode(json.loads(last)).totals
    return Totals()


class LedgerAudit:
    """One ledger, from its first line on; what was added since is read at the next look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._lives: dict[Life, LifeAudit] = {}
        self._damaged: tuple[str, ...] = ()
        self.is_behind = False  # there is more than one look takes
        self.totals = Totals()  # of all lives
        self.batches = 0
        self.problems: tuple[str, ...] = ()

    def look(self, most_lines: int = LINES_AT_ONCE) -> None:
        found = 0
        with suppress(OSError), self._path.open("rb") as file:  # not there yet
            file.seek(self._at)
            for line in islice(lines_in(file), most_lines):
                self._at += len(line) + 1
                self._take(line)
                found += 1
        self.is_behind = found == most_lines
        if found:
            self._sum_up()

    def _take(self, line: bytes) -> None:
        try:
            offset = decode(json.loads(line))
        except (ValueError, RecursionError, SpillwayError):
            self._damaged = (f"{self._path.name} has a damaged line before byte {self._at}",)
            return
        life = (offset.gate, offset.began_us)
        self._lives.setdefault(life, LifeAudit(shown=0)).add(offset)

    def _sum_up(self) -> None:
        audits = [life.result() for life in self._lives.values()]
        fields = ("offered", "admitted", "shed", "lost")
        self.totals = Totals(
            **{name: sum(getattr(a.totals, name) for a in audits) for name in fields}
        )
        self.batches = sum(audit.batch_count for audit in audits)
        missing = sum(audit.missing_count for audit in audits)
        gone = (f"{missing} batches have no line",) if missing else ()
        told = tuple(problem for audit in audits for problem in audit.problems)
        self.problems = self._damaged + gone + told


def audit_of(ledgers: Iterable[LedgerAudit]) -> Audit:
    """Of one query, over the ledgers of its streams."""
    looked = tuple(ledgers)
    batches = sum(one.batches for one in looked)
    problems = tuple(problem for one in looked for problem in one.problems)
    if problems:
        return Audit(verdict="not exact", batches=batches, problems=problems[:_PROBLEMS_SHOWN])
    if any(one.is_behind for one in looked):
        return Audit(verdict="reading", batches=batches)
    return Audit(verdict="exact" if batches else "no batch yet", batches=batches)


def sum_of(ledgers: Iterable[LedgerAudit]) -> Totals:
    looked = tuple(ledgers)
    return Totals(
        offered=sum(one.totals.offered for one in looked),
        admitted=sum(one.totals.admitted for one in looked),
        shed=sum(one.totals.shed for one in looked),
        lost=sum(one.totals.lost for one in looked),
    )
