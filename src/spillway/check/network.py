"""Queries that feed each other, drawn: who reads whose results, and through what."""

from collections.abc import Iterator

from spillway.flow.flow import Flow
from spillway.flow.links import Link, links_of, readers_of


def arcs_of(flow: Flow) -> tuple[tuple[Link, str], ...]:
    """(link, reader), for every query that reads another one's results."""
    read_by = readers_of(flow)
    return tuple((link, reader) for link in links_of(flow) for reader in read_by[link.stream])


def drawn(flow: Flow) -> list[str]:
    """One line a query, below what feeds it; nothing where no query feeds another.

    A query that several feed stands below each of them, with what is behind it below the first.
    """
    arcs = arcs_of(flow)
    fed = {reader for _, reader in arcs}
    chained = {link.writer for link, _ in arcs}
    roots = [name for name in flow.queries if name in chained and name not in fed]
    seen: set[str] = set()
    lines = [line for root in roots for line in _below(root, flow, arcs, seen, 0, "")]
    in_circles = [name for name in flow.queries if name in chained and name not in seen]
    for name in in_circles:
        if name not in seen:
            lines += _below(name, flow, arcs, seen, 0, "")
    return lines


def _below(
    name: str,
    flow: Flow,
    arcs: tuple[tuple[Link, str], ...],
    seen: set[str],
    depth: int,
    through: str,
) -> Iterator[str]:
    arrow = f"{'   ' * depth}-> " if depth else ""
    by = f" by {through}" if through else _from_outside(name, flow)
    behind = [(link, reader) for link, reader in arcs if link.writer == name]
    again = ", as above" if name in seen and behind else ""
    ends = "" if behind else f" -> {flow.queries[name].sink.type}"
    yield f"{arrow}{name}{by}{again}{ends}"
    if name in seen:
        return
    seen.add(name)
    for link, reader in behind:
        kind = "topic" if flow.streams[link.stream].source == "kafka" else "folder"
        yield from _below(reader, flow, arcs, seen, depth + 1, f"{kind} {link.place}")


def _from_outside(name: str, flow: Flow) -> str:
    read = [stream for stream, readers in readers_of(flow).items() if name in readers]
    return f" (reads {', '.join(read)})"
