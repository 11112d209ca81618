"""The lab's commands: there when the package `spillway_lab` is installed."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import typer

from spillway.errors import SpillwayError

COMMANDS = {
    "simulate": "Run one load manager on a simulated engine, in virtual time (lab).",
    "reproduce": "Run an experiment of the papers and compare it with what they printed (lab).",
    "bench": "Measure this machine (lab).",
}
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_lab_commands(app: typer.Typer) -> None:
    """By name only: the lab is imported when one of them is called, for it takes its time."""
    for name, what in COMMANDS.items():
        registered = app.command(name, help=what, add_help_option=False, context_settings=PASS_ON)
        registered(_forward_to(name))


def _forward_to(name: str) -> Callable[[typer.Context], None]:
    def forward(context: typer.Context) -> None:
        lab = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        lab.command()(_command(name))
        lab(args=context.args, prog_name=context.command_path)

    return forward


def _command(name: str) -> Callable[..., None]:
    if find_spec("spillway_lab") is None:
        raise SpillwayError(
            f"'spillway {name}' belongs to the lab, which is not installed:"
            " pip install spillway-lab, or ./lab in a checkout"
        )
    found: Callable[..., None] = import_module(f"spillway_lab.commands.{name}").command
    return found
