"""The tables in docs/ that are made from declarations, between markers that name them.

python -m spillway.check.pages docs
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from spillway.check.declared import table_of
from spillway.check.reference import reference, sink_reference
from spillway.errors import unknown_name
from spillway.gate.options import OPTIONS as GATE
from spillway.load.capabilities import Capabilities
from spillway.load.laws import LAWS
from spillway.logs import catalog as logs
from spillway.options import Option

_BLOCK = re.compile(r"<!-- options:begin ([^>]*?) -->\n.*?<!-- options:end -->", re.DOTALL)


def refreshed(page: str) -> str:
    """The page with its tables as the declarations have them now."""
    return _BLOCK.sub(lambda found: _block(found[1]), page)


def blocks_in(page: str) -> list[str]:
    return _BLOCK.findall(page)


def _block(name: str) -> str:
    if name not in BLOCKS:
        raise unknown_name("table", name, BLOCKS)
    return f"<!-- options:begin {name} -->\n{BLOCKS[name]()}\n<!-- options:end -->"


def _logs() -> str:
    """One table a log."""
    return "\n".join(
        f"\n### `source: {name}`\n{logs.meaning_of(name)}\n\n{_users(logs.options_of(name))}"
        for name in logs.MODULES
    )


def _users(options: Iterable[Option]) -> str:
    return table_of(option for option in options if option.set_by == "user")


def _laws() -> str:
    """One row a law, one a parameter."""
    marks = [f.replace("_", " ") for f in Capabilities.__dataclass_fields__]
    rows = [f"| law | decides at every | {' | '.join(marks)} |", "|---" * (2 + len(marks)) + "|"]
    for name, law in LAWS.items():
        can = ["yes" if held else "-" for held in asdict(law.capabilities).values()]
        rows.append(f"| `{name}` | {law.cadence} | {' | '.join(can)} |")
    tables = [
        f"### `{name}`\n{table_of(law.parameters, 'parameter')}"
        for name, law in LAWS.items()
        if law.parameters
    ]
    return "\n\n".join(["\n".join(rows), *tables])


# One line a table.
BLOCKS: Mapping[str, Callable[[], str]] = {
    "gate": lambda: _users(GATE),
    "gate, set by run": lambda: table_of(option for option in GATE if option.set_by == "run"),
    "laws": _laws,
    "logs": _logs,
    "sinks": sink_reference,
    "flow": reference,
}


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.md")):
        before = path.read_text()
        if (after := refreshed(before)) != before:
            path.write_text(after)
            print(f"{path} rewritten")
