"""Paths of this machine and URIs of other storage, told apart by their text."""

import re

from spillway.errors import SpillwayError, shown

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(.*)", re.DOTALL)


def is_remote(place: str) -> bool:
    """Whether a text is a URI of another machine's storage; raises for a scheme of none."""
    found = _URI.fullmatch(place)
    if found is None or found[1].lower() == "file":
        return False
    if found[1].lower() not in SCHEMES:
        raise SpillwayError(
            f"'{shown(place)}' is on no storage that is known: give a path, file: or one of"
            f" {', '.join(f'{scheme}:' for scheme in SCHEMES)}"
        )
    return True


def local(place: str) -> str:
    """A path as Spark takes it: plain, or as a URI."""
    if not place.startswith("file:"):
        return place
    return place.removeprefix("file:").replace("///", "/", 1)
