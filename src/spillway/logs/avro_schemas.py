"""The schemas that Avro records were written with, by the numbers that stand in the records."""

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from spillway.errors import SpillwayError, shown
from spillway.options import Option

AVRO: tuple[Option, ...] = (
    Option(
        "avro_schemas",
        "text",
        "`avro`: the writers' schemas by their numbers, files that each worker has",
        example="17=bids.avsc,18=bids-2.avsc",
    ),
    Option("registry", "text", "`avro`: a Confluent schema registry", example="http://host:8081"),
)
_ANSWER_S, _PAUSE_S = 5.0, 0.5
_TYPE = "AVRO"  # in a registry's words


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """In files, or in a registry that is asked once for each number."""

    files: tuple[tuple[int, str], ...] = ()
    registry: str | None = None
    patience_s: float = 60.0  # a registry that is silent for so long ends the query

    @classmethod
    def given(cls, files: str | None, registry: str | None, patience_s: float) -> "Schemas":
        """From the options; raises where they name no schemas."""
        if (files is None) == (registry is None):
            raise SpillwayError(
                "option 'decode' is 'avro': say where the schemas are, with either avro_schemas"
                " (17=bids.avsc) or registry (http://host:8081)"
            )
        if registry is not None and not registry.startswith(("http://", "https://")):
            raise SpillwayError(
                f"option 'registry' is '{shown(registry)}': it must be an http or https address,"
                " for example http://host:8081"
            )
        named = tuple(map(_numbered, files.split(","))) if files is not None else ()
        made = cls(files=named, registry=registry, patience_s=patience_s)
        for number, _ in named:
            made.text(number)
        return made

    def text(self, number: int) -> str | None:
        """The schema as JSON; None: nobody knows it."""
        if self.registry is not None:
            return _asked(self.registry.rstrip("/"), number, self.patience_s)
        path = dict(self.files).get(number)
        return None if path is None else _in_file(path)


def _numbered(text: str) -> tuple[int, str]:
    number, equals, path = text.strip().partition("=")
    if not (equals and path and number.isascii() and number.isdecimal() and int(number) < 1 << 32):
        raise SpillwayError(
            f"option 'avro_schemas' has '{shown(text)}': it must be NUMBER=FILE, with the number"
            " that the registry gave the schema, for example 17=bids.avsc"
        )
    return int(number), path


@lru_cache(maxsize=1024)
def _in_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SpillwayError(f"option 'avro_schemas': '{path}' cannot be read: {said}") from None


@lru_cache(maxsize=10_000)
def _asked(registry: str, number: int, patience_s: float) -> str | None:
    """A number stands for the same schema for ever."""
    from urllib.error import HTTPError  # few need it, and it is imported for each worker
    from urllib.request import urlopen

    until_s = time.monotonic() + patience_s
    while True:
        try:
            with urlopen(f"{registry}/schemas/ids/{number}", timeout=_ANSWER_S) as answer:
                found = json.load(answer)
            is_ours = found.get("schemaType", _TYPE) == _TYPE and not found.get("references")
            return str(found["schema"]) if is_ours else None
        except HTTPError as error:
            if error.code == 404:
                return None
            said = f"{error.code} {error.reason}"
        except (OSError, ValueError, KeyError, AttributeError) as error:
            said = str(getattr(error, "reason", error))
        if time.monotonic() > until_s:
            raise SpillwayError(
                f"the registry at {registry} did not say what schema {number} is for"
                f" {patience_s:g} s ({said}): is it up?"
            )
        time.sleep(_PAUSE_S)
