"""The `spillway` command. One module a command; errors are one line and exit code 2."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from spillway.cli.adopt import adopt
from spillway.cli.backfill import backfill
from spillway.cli.check import check
from spillway.cli.cluster import cluster, query
from spillway.cli.demo import demo
from spillway.cli.doctor import doctor
from spillway.cli.instances import instances
from spillway.cli.lab import add_lab_commands
from spillway.cli.ledger import ledger
from spillway.cli.node import node
from spillway.cli.offsets import offsets
from spillway.cli.replay import replay
from spillway.cli.report import report
from spillway.cli.run import run
from spillway.cli.screen import console, print_error
from spillway.cli.set import set_setting
from spillway.cli.top import top
from spillway.errors import SpillwayError

app = typer.Typer(
    name="spillway",
    help="Keeps Spark Structured Streaming queries inside their delay targets under overload.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(run)
app.command()(check)
app.command()(doctor)
app.command("set")(set_setting)
app.command()(top)
app.command()(report)
app.add_typer(cluster, name="cluster")
app.add_typer(query, name="query")
app.command()(node)
app.add_typer(instances, name="instances")
app.command()(ledger)
app.command()(offsets)
app.command()(adopt)
app.command()(replay)
app.command()(backfill)
add_lab_commands(app)


def _show_version(asked: bool) -> None:
    if asked:
        try:
            console.print(f"spillway {version('spillway-spark')}")
        except PackageNotFoundError:
            console.print("spillway, not installed: run from its source")
        raise typer.Exit


@app.callback()
def spillway(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="the version, and no more"
        ),
    ] = False,
) -> None:
    """What stands before a command."""


def main() -> None:
    try:
        app()
    except SpillwayError as error:
        print_error(error)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
