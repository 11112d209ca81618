"""`make chaos`: how many kills each kind of run gets, and what came of all of them together."""

import os
from collections import Counter

TALLY: Counter[str] = Counter()
_SHARES = {"generated": 30, "kafka": 25, "classes": 15, "templates": 15, "shedders": 15}  # percent


def kills(kind: str, otherwise: int) -> int:
    """Of SPILLWAY_KILLS; `otherwise` where nobody asked for chaos."""
    asked = os.environ.get("SPILLWAY_KILLS")
    return otherwise if asked is None else max(1, round(int(asked) * _SHARES[kind] / 100))


def count(*, killed: int, replayed: int, compared: int) -> None:
    """After a comparison that found no difference: a difference fails its test."""
    TALLY.update({"kills": killed, "batches run again": replayed, "tuples compared": compared})
