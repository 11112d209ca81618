"""`spillway set`: change a class while its flow runs."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.screen import console, print_json
from spillway.errors import SpillwayError, shown


def set_setting(
    change: Annotated[str, typer.Argument(help="CLASS.SETTING=VALUE, for example gold.delay=1s")],
    folder: Annotated[Path, typer.Option(help="the folder of the running flow")],
    clear: Annotated[
        bool, typer.Option("--clear", help="CLASS.SETTING is as in the flow file again")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Change delay, priority, lend, manager, min_keep or shedding of a class, or `control.policy`.

    Targets take effect at the query's next turn, shares at the next redistribution
    (`control.cycle` periods). What was set stays set after a restart.
    """
    from spillway.hosts.spark.driver.channel import request_change

    key, equals, value = change.partition("=")
    if clear == bool(equals) or (equals and not value):
        raise SpillwayError(
            f"'{shown(change)}' is no change: write CLASS.SETTING=VALUE, or CLASS.SETTING --clear"
        )
    request_change(channel_of(folder), key, None if clear else value)
    if as_json:
        print_json({key: None if clear else value})
    else:
        now = "as in the flow file again" if clear else f"{value} now"
        console.print(f"{key} is {now}", highlight=False)


def channel_of(folder: Path) -> str:
    """Where the flow that runs there listens."""
    try:
        return (folder / "channel").read_text()
    except (OSError, ValueError) as error:
        raise SpillwayError(
            f"no flow runs in {folder}: name the folder of `spillway run`"
        ) from error
