"""References of a flow file and their values: what is not there is told with its place."""

from spillway.check.document import Document
from spillway.errors import SpillwayError, shown
from spillway.flow.references import looked_up, references


def resolve(document: Document) -> None:
    """Put the values in; raises with the places of those that are not there."""
    problems: list[str] = []
    for place, table, key in references(document.value):
        try:
            table[key] = looked_up(document.path.parent, str(key), table[key])
        except SpillwayError as error:
            name = ".".join(shown(str(step)) for step in place)
            problems.append(f"{document.where(place)}: {name} {error}")
    if problems:
        raise SpillwayError(*problems)
