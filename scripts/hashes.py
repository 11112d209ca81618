"""requirements.txt with the sha256 of every file that pip would take here and now.

A later `pip install --require-hashes -r` takes these files and no others: `make hashes`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"


def pinned(report: Mapping[str, Any]) -> Iterator[str]:
    """A line for each package of a report of `pip install --report`."""
    for item in sorted(report["install"], key=lambda item: item["metadata"]["name"].lower()):
        found = item["download_info"]["archive_info"]["hashes"]["sha256"]
        yield f"{item['metadata']['name']}=={item['metadata']['version']} --hash=sha256:{found}"


def main() -> None:
    asked = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *asked, "-r", str(REQUIREMENTS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit("pip cannot reach all of requirements.txt: its reason is above")
    print("\n".join(pinned(json.loads(done.stdout))))


if __name__ == "__main__":
    main()
