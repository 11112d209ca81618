"""Options that the lab's commands share."""

from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(help="seed of all randomness")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON only")]
