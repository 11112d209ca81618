"""What was shed, and in a dry run what would have been, by hour or day of a ledger."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from spillway.errors import SpillwayError, printable
from spillway.gate.ledger import Life
from spillway.gate.offsets import Offset
from spillway.gate.sampling import PPM
from spillway.report import Table

FORMS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d"}


@dataclass(kw_only=True)
class Period:
    """UTC. `would_shed`: of the admitted, what a dry run would have dropped."""

    gate: str
    begins: str
    batches: int = 0
    offered: int = 0
    admitted: int = 0
    shed: int = 0
    would_shed: int = 0

    def add(self, offset: Offset) -> None:
        offered, kept = offset.offered_tuples, offset.kept_tuples()
        would_keep = round(offered * offset.rule.would_keep_ppm / PPM)
        self.batches += 1
        self.offered += offered
        self.admitted += kept
        self.shed += offered - kept
        self.would_shed += max(0, kept - would_keep) if offset.rule.would_keep_ppm < PPM else 0


def periods(offsets: Iterable[Offset], by: str) -> list[Period]:
    """In order. A batch that Spark has shown twice counts once."""
    if by not in FORMS:
        raise SpillwayError(f"--by is '{by}': it must be hour or day")
    last: dict[Life, int] = {}
    found: dict[tuple[str, str], Period] = {}
    for offset in offsets:
        life = (offset.gate, offset.began_us)
        if offset.seq <= last.get(life, -1):
            continue
        last[life] = offset.seq
        planned = datetime.fromtimestamp(offset.planned_us / 1e6, tz=UTC)
        begins = planned.strftime(FORMS[by])
        period = found.setdefault((begins, offset.gate), Period(gate=offset.gate, begins=begins))
        period.add(offset)
    return [found[key] for key in sorted(found)]


def table_of(found: Iterable[Period], by: str) -> Table:
    rows = [
        (
            p.begins,
            printable(p.gate),
            p.batches,
            f"{p.offered:,}",
            f"{p.admitted:,}",
            _part(p.shed, p.offered),
            _part(p.would_shed, p.offered),
        )
        for p in found
    ]
    columns = (f"{by} (UTC)", "gate", "batches", "offered", "admitted", "shed", "would go")
    return Table(title="", columns=columns, rows=rows)


def as_json(found: Iterable[Period]) -> dict[str, Any]:
    return {"periods": [asdict(period) for period in found]}


def _part(tuples: int, of: int) -> str:
    return f"{tuples:,} ({tuples / of:.1%})" if of else "0"
