"""What a watch serves: a driver's flow, and whatever else can be looked at in the same way."""

from collections.abc import Mapping
from typing import Any, Protocol

from spillway.watch.preview import Preview
from spillway.watch.story import Story
from spillway.watch.views import Snapshot


class Watched(Protocol):
    """`look` may take milliseconds and is called in a thread, about once a second; nothing else is
    called more often than somebody asks for it."""

    @property
    def story(self) -> Story: ...

    def look(self) -> Snapshot: ...

    def metrics_text(self) -> bytes: ...

    def change(self, changes: Mapping[str, object], by: str) -> None:
        """All or nothing; SpillwayError says why not."""
        ...

    def preview(self, targets: Mapping[str, str]) -> Preview:
        """What these targets, by class, would have meant in the last minutes; takes seconds."""
        ...

    def instances(self) -> Mapping[str, list[dict[str, Any]]]:
        """Of every template, by query."""
        ...

    def change_instances(
        self, query: str, add: list[dict[str, Any]], remove: list[int], by: str
    ) -> list[int]:
        """The ids of those that were added."""
        ...
