"""`spillway set`: change a class while its flow runs."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.screen import console, print_json
from spillway.errors import SpillwayError, shown


def set_setting(
    change: Annotated[str, typer.Argument(help="CLASS.SETTING=VALUE, for example gold.delay=1s")],
    folder: Annotated[Path, typer.Option(help="the folder of the running flow")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Change priority, delay or lend of a class, or `control.policy`.

    Targets take effect at the query's next turn, shares at the next redistribution
    (`control.cycle` periods).
    """
    from spillway.hosts.spark.driver.channel import request_change

    key, equals, value = change.partition("=")
    if not equals or not value:
        raise SpillwayError(f"'{shown(change)}' is no change: write CLASS.SETTING=VALUE")
    try:
        path = (folder / "channel").read_text()
    except (OSError, ValueError) as error:
        raise SpillwayError(
            f"no flow runs in {folder}: name the folder of `spillway run`"
        ) from error
    request_change(path, key, value)
    if as_json:
        print_json({key: value})
    else:
        console.print(f"{key} is {value} now", highlight=False)
