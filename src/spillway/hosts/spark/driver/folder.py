"""Where a flow keeps what must survive."""

from dataclasses import dataclass
from pathlib import Path

from spillway.logs.dead_letters import default_place


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Checkpoints, ledgers, instances and the journal, all under one root."""

    root: Path

    def checkpoint(self, query: str) -> Path:
        return self.root / "checkpoints" / query

    def ledger(self, query: str, stream: str) -> Path:
        return self.root / "ledgers" / f"{query}.{stream}.jsonl"

    def dead_letters(self, query: str, stream: str) -> Path:
        return Path(default_place(f"{query}/{stream}", str(self.ledger(query, stream))))

    def instances(self, query: str) -> Path:
        return self.root / "instances" / f"{query}.jsonl"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def channel(self) -> Path:
        """Holds the path of the running flow's socket (socket paths must be short)."""
        return self.root / "channel"
