"""The `spillway` command. One module a command; errors are one line and exit code 2."""

import sys

import typer

from spillway.cli.check import check
from spillway.cli.cluster import cluster, node, query
from spillway.cli.demo import demo
from spillway.cli.instances import instances
from spillway.cli.lab import add_lab_commands
from spillway.cli.ledger import ledger
from spillway.cli.offsets import offsets
from spillway.cli.replay import replay
from spillway.cli.run import run
from spillway.cli.screen import errors
from spillway.cli.set import set_setting
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
app.command("set")(set_setting)
app.add_typer(cluster, name="cluster")
app.add_typer(query, name="query")
app.command()(node)
app.add_typer(instances, name="instances")
app.command()(ledger)
app.command()(offsets)
app.command()(replay)
add_lab_commands(app)


@app.callback()
def spillway() -> None:
    """Makes `spillway` a group even while it has a single command."""


def main() -> None:
    try:
        app()
    except SpillwayError as error:
        errors.print(f"spillway: {error}", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
