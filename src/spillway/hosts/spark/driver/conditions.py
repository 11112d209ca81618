"""What is unusual about a class, in one line for the screen and the journal."""

from collections.abc import Sequence

from spillway.classes.balance import QueryLoad
from spillway.model import Target

QUIET_S = 10.0  # a class without a new tuple for so long is called quiet

NO_DATA = "no tuple has arrived yet: its share is lent to the others"
QUIET = (
    f"no tuple for {QUIET_S:.0f} s and more: its share is lent to the others,"
    " the next tuple gets a batch at once"
)


def condition_of(target: Target, gates: Sequence[QueryLoad], silent_s: float | None) -> str | None:
    """None when all is as usual; `silent_s` is the time since the last tuple, None before it."""
    if silent_s is None:
        return NO_DATA
    if silent_s > QUIET_S:
        return QUIET
    fixed_s = max((gate.fixed_s for gate in gates), default=0.0)
    if fixed_s >= target.delay_s:
        return (
            f"its target ({target}) cannot be met: a batch alone takes {fixed_s:.2f} s;"
            " batches run back to back, and only what would make them much longer is shed"
        )
    return None
