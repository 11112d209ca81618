"""The lab's commands: there when the package `spillway_lab` is installed."""

from importlib import import_module
from importlib.util import find_spec

import typer

from spillway.errors import SpillwayError

COMMANDS = {
    "simulate": "one load manager on a simulated engine, in virtual time",
    "reproduce": "an experiment of the papers, beside what they printed",
    "bench": "a benchmark of this machine",
}


def add_lab_commands(app: typer.Typer) -> None:
    """The commands themselves, or what says how to get them."""
    installed = find_spec("spillway_lab") is not None
    for name, what in COMMANDS.items():
        if installed:
            app.command(name)(import_module(f"spillway_lab.commands.{name}").command)
        else:
            _add_missing(app, name, what)


def _add_missing(app: typer.Typer, name: str, what: str) -> None:
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(name, help=f"{what} (needs the lab)", context_settings=settings)
    def missing() -> None:
        raise SpillwayError(
            f"'spillway {name}' belongs to the lab, which is not installed:"
            " pip install ./lab in a checkout, beside the product"
        )
