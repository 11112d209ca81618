"""A YAML document as plain values, each with its line: what a flow file may hold, and no more.

YAML can repeat a key, refer to itself, grow by aliases until the memory is full, and turn a text
into a date. Here a key stands once, aliases count as often as they are used, and a value is a text,
a number, true or false, nothing, a list or a mapping with texts as keys.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from spillway.errors import SpillwayError, shown

Location = tuple[str | int, ...]

MOST_BYTES = 8 << 20
MOST_NODES = 500_000  # aliases count as often as they are used
MOST_DEPTH = 32
_MOST_DIGITS = 40  # of a number
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_WHOLE = re.compile(r"[-+]?(0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*)")  # 1:30 is a text
_RESOLVER = yaml.SafeLoader("")  # which plain scalars are numbers, true, false or nothing
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a value stands. `whole_lines`: its lines are those of the file, from `text_line` on."""

    line: int
    text_line: int
    whole_lines: bool


@dataclass(frozen=True, kw_only=True)
class Document:
    path: Path
    value: dict[str, Any]
    places: dict[Location, Place]

    def where(self, location: Location, line: int | None = None) -> str:
        """file:line of a key, or of what is nearest above it; `line` is one of a long text."""
        while location and location not in self.places:
            location, line = location[:-1], None
        place = self.places.get(location)
        if place is None:
            return f"{self.path}:1"
        if line is not None and place.whole_lines:
            return f"{self.path}:{place.text_line + line - 1}"
        return f"{self.path}:{place.line}"


def read_document(path: Path) -> Document:
    """Raises with file and line where the file is no YAML, or more than a flow file may hold."""
    text = _text_of(path)
    root = _Composer(path, text).root()
    places = dict(_places(root, ()))
    if not isinstance(root.value, dict):
        raise SpillwayError(
            f"{path}:1 must be a mapping with the keys streams, classes and queries"
        )
    return Document(path=path, value=_plain(root), places=places)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise SpillwayError(
                f"{path} has more than {MOST_BYTES >> 20} MB: it is no flow file; give many"
                " instances as a CSV file"
            )
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise SpillwayError(f"there is no flow file at {path}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SpillwayError(
            f"{path}:{line} is no UTF-8 text (byte {data[error.start]:#04x})"
        ) from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise SpillwayError(f"{path} cannot be read: {said}") from error
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise SpillwayError(
            f"{path}:{line} holds the control character {found[0]!a}: a flow file is text"
        )
    return text


@dataclass(slots=True)
class _Node:
    """A value with its place: a plain value, a list of nodes, or (key line, node) by key."""

    value: Any
    place: Place
    size: int = 1
    depth: int = 1


class _Composer:
    """Nodes from the parser's events, one after the other."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._anchors: dict[str, _Node | None] = {}  # None: not complete yet
        self._nodes = 0
        self._loader = _PARSER(text)

    def root(self) -> _Node:
        try:
            while not isinstance(event := self._next(), yaml.DocumentStartEvent):
                if isinstance(event, yaml.StreamEndEvent):
                    return _Node(None, Place(line=1, text_line=1, whole_lines=False))
            node = self._node(self._next(), 1)
            self._next()  # the end of the document
            if not isinstance(event := self._next(), yaml.StreamEndEvent):
                raise self._refused(event, "begins a second document: a flow file has one")
            return node
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
            line = mark.line + 1 if mark else 1
            raise SpillwayError(f"{self._path}:{line} is not YAML: {problem}") from error

    def _next(self) -> Any:
        return self._loader.get_event()

    def _node(self, event: Any, depth: int) -> _Node:
        if depth > MOST_DEPTH:
            raise self._refused(event, f"is nested too deeply: at most {MOST_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            node = self._alias(event)
        else:
            anchor = event.anchor
            if anchor is not None:
                self._anchors[anchor] = None
            node = self._made(event, depth)
            if anchor is not None:
                self._anchors[anchor] = node
        self._nodes += node.size if isinstance(event, yaml.AliasEvent) else 1
        if self._nodes > MOST_NODES:
            raise self._refused(
                event, f"is more than a flow file may hold: {MOST_NODES} values, aliases included"
            )
        if depth + node.depth - 1 > MOST_DEPTH:
            raise self._refused(event, f"is nested too deeply: at most {MOST_DEPTH} levels")
        return node

    def _alias(self, event: Any) -> _Node:
        if event.anchor not in self._anchors:
            raise self._refused(event, f"refers to &{shown(event.anchor)}, which is not there")
        node = self._anchors[event.anchor]
        if node is None:
            raise self._refused(event, f"refers to &{event.anchor} inside of itself")
        return node

    def _made(self, event: Any, depth: int) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            return _Node(self._scalar(event), self._place(event))
        if isinstance(event, yaml.SequenceStartEvent):
            self._require_tag(event, f"{_TAG}seq", "a list")
            return self._list(event, depth)
        self._require_tag(event, f"{_TAG}map", "a mapping")
        return self._mapping(event, depth)

    def _list(self, start: Any, depth: int) -> _Node:
        items = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return _Node(items, self._place(start), *_extent(items))

    def _mapping(self, start: Any, depth: int) -> _Node:
        found: dict[str, tuple[int, _Node]] = {}
        merged: list[_Node] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refused(event, "has a key that is no text")
            if event.anchor is not None:
                raise self._refused(event, "has an anchor at a key: put it at a value")
            self._require_tag(event, f"{_TAG}str", "a key")
            key = self._checked(event, event.value)
            node = self._node(self._next(), depth + 1)
            if key == "<<" and not event.style:
                merged += self._merged(event, node)
            elif key in found:
                raise self._refused(
                    event,
                    f"repeats the key '{shown(key)}', which stands in line {found[key][0]} already",
                )
            else:
                found[key] = (self._place(event).line, node)
        for node in merged:
            found = {**node.value, **found}
        return _Node(found, self._place(start), *_extent([node for _, node in found.values()]))

    def _merged(self, event: Any, node: _Node) -> list[_Node]:
        """What `<<` takes over; of several mappings the first one wins."""
        parts = node.value if isinstance(node.value, list) else [node]
        if not all(isinstance(part.value, dict) for part in parts):
            raise self._refused(event, "has a key '<<' whose value is no mapping")
        return list(parts)

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is None:
            tag = _RESOLVER.resolve(yaml.ScalarNode, text, event.implicit)  # type: ignore[no-untyped-call]
        elif tag == "!":
            tag = f"{_TAG}str"
        elif tag not in _PLAIN_TAGS:
            raise self._unknown_tag(event)
        return self._typed(event, text, tag.removeprefix(_TAG))

    def _typed(self, event: Any, text: str, kind: str) -> Any:
        """Dates stay texts: what they mean is for the option that takes them."""
        if kind in ("int", "float") and len(text) > _MOST_DIGITS:
            said = f"has a number of {len(text)} characters: at most {_MOST_DIGITS}"
            raise self._refused(event, said)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("yes", "true", "on", "y")
        if kind == "int" and _WHOLE.fullmatch(text):
            return self._number(event, text, int)
        if kind == "float" and ":" not in text:
            return self._number(event, text, float)
        return self._checked(event, text)

    def _number(self, event: Any, text: str, kind: type[int] | type[float]) -> Any:
        plain = text.replace("_", "")
        try:
            if kind is int:
                octal = re.fullmatch(r"[-+]?0[0-7]+", plain)
                return int(plain, 8) if octal else int(plain, 0)
            number = float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            raise self._refused(event, f"has '{shown(text)}', which is no number") from None
        if not isfinite(number):
            raise self._refused(event, f"has {text}, which is no number that can be worked with")
        return number

    def _checked(self, event: Any, text: str) -> str:
        if found := _CONTROL.search(text):
            raise self._refused(event, f"holds the control character {found[0]!a}")
        return text

    def _require_tag(self, event: Any, allowed: str, what: str) -> None:
        if event.tag not in (None, "!", allowed):
            raise self._unknown_tag(event)

    def _unknown_tag(self, event: Any) -> SpillwayError:
        tag = event.tag.replace(_TAG, "!!")
        return self._refused(event, f"has the tag {shown(tag)}: flow files take no tags")

    def _place(self, event: Any) -> Place:
        """A block's text begins below its `|`; other texts of several lines are folded."""
        line = event.start_mark.line + 1
        is_block = isinstance(event, yaml.ScalarEvent) and event.style == "|"
        return Place(line=line, text_line=line + 1, whole_lines=is_block)

    def _refused(self, event: Any, what: str) -> SpillwayError:
        return SpillwayError(f"{self._path}:{event.start_mark.line + 1} {what}")


def _extent(nodes: list[_Node]) -> tuple[int, int]:
    return 1 + sum(node.size for node in nodes), 1 + max((n.depth for n in nodes), default=0)


def _plain(node: _Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(inner) for key, (_, inner) in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(inner) for inner in node.value]
    return node.value


def _places(node: _Node, location: Location) -> Iterator[tuple[Location, Place]]:
    """A key's line rather than that of its value, which may begin below it."""
    yield location, node.place
    if isinstance(node.value, dict):
        for key, (line, value) in node.value.items():
            inner = (*location, key)
            yield from _places(value, inner)
            place = value.place
            yield (
                inner,
                Place(line=line, text_line=place.text_line, whole_lines=place.whole_lines),
            )
    elif isinstance(node.value, list):
        for index, item in enumerate(node.value):
            yield from _places(item, (*location, index))
