"""A bill of materials of what the product brings: `make sbom`.

Everything that `spillway-spark` and its extras need, found from the metadata of what is installed,
as CycloneDX JSON on standard output; with --licences as the table of docs/licences.md.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
_NAMED = {  # what metadata calls a licence, and its name in SPDX
    "apache software license": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "http://www.apache.org/licenses/license-2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license": "ISC",
    "mit license": "MIT",
    "python software foundation license": "PSF-2.0",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "dual license": "Apache-2.0 OR BSD-3-Clause",
}
_BY_NAME = {"cycler": "BSD-3-Clause", "kiwisolver": "BSD-3-Clause"}  # they hold the whole text


def product() -> tuple[str, str, list[str]]:
    """Name, version and all requirements, those of the extras too."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"].values()
    needed = [*declared["dependencies"], *(one for extra in extras for one in extra)]
    return declared["name"], declared["version"], needed


def closure(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Every distribution that these need here, by its name."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        extras = [{"extra": extra} for extra in (one.extras or {""})]
        if name in found or (one.marker and not any(map(one.marker.evaluate, extras))):
            continue
        try:
            found[name] = distribution(one.name)
        except PackageNotFoundError:
            sys.exit(f"sbom: {one.name} is not installed: run `make test` first")
        for text in found[name].requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(map(inner.marker.evaluate, extras)):
                waiting.append(inner)
    return dict(sorted(found.items()))


def licence_of(dist: Distribution) -> str:
    """The SPDX expression, as the metadata has it or as its older fields say."""
    told = dist.metadata
    if (name := told["Name"].lower()) in _BY_NAME:
        return _BY_NAME[name]
    if expression := told.get("License-Expression"):
        return expression
    classified = [
        text.rpartition(" :: ")[2]
        for text in told.get_all("Classifier") or ()
        if text.startswith("License :: ")
    ]
    for text in (told.get("License") or "", *classified):
        first = text.strip().partition("\n")[0]
        if named := _NAMED.get(first.lower()):
            return named
        if first and len(first) < 40 and first != "OSI Approved":
            return first
    return "unknown"


def bill(name: str, version: str, found: dict[str, Distribution]) -> dict[str, Any]:
    components = [
        {
            "type": "library",
            "bom-ref": f"{key}@{dist.version}",
            "name": key,
            "version": dist.version,
            "licenses": [{"expression": licence_of(dist)}],
        }
        for key, dist in found.items()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": version}},
        "components": components,
    }


def table(found: dict[str, Distribution]) -> str:
    rows = [f"| {name} | {licence_of(dist)} |" for name, dist in found.items()]
    return "\n".join(["| package | licence |", "|---|---|", *rows])


def main() -> None:
    name, version, needed = product()
    found = closure(needed)
    if sys.argv[1:] == ["--licences"]:
        print(table(found))
    else:
        print(json.dumps(bill(name, version, found), indent=2))


if __name__ == "__main__":
    main()
