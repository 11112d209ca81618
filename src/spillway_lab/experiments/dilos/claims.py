"""Claims that several experiments with three classes check."""

from collections.abc import Mapping

from spillway_lab.engine.class_networks import CLASSES
from spillway_lab.experiments.dilos.setting import ClassesRun
from spillway_lab.experiments.report import Check


def spared(
    runs: Mapping[str, ClassesRun], names: Mapping[str, str], paper: str, most: float = 0.0
) -> Check:
    """Classes 1 and 2 lose nothing, or at most so much, and keep their targets in these runs."""
    nothing = f"at most {most:.1%}" if most else "nothing"
    worst_loss = max(run.classes[c].loss_ratio for run in runs.values() for c in ("1", "2"))
    slack = {
        c: max(run.classes[c].mean_delay_s for run in runs.values()) / CLASSES[c].target.delay_s
        for c in ("1", "2")
    }
    return Check(
        name=f"classes 1 and 2 lose {nothing} and keep their targets: {', '.join(names.values())}",
        paper=paper,
        here=f"at most {worst_loss:.2%} lost; up to {slack['1']:.0%} and {slack['2']:.0%}"
        " of the targets used",
        holds=worst_loss <= most and max(slack.values()) <= 1.0,
    )


def saved(separate: float, dilos: float, sharing: float, *, clearly: float) -> list[Check]:
    """What class 3 loses with separate load managers, DILoS, and DILoS with sharing."""
    return [
        Check(
            name="DILoS: class 3 loses clearly less than with separate load managers",
            paper="24.43 % instead of 85.37 %",
            here=f"{dilos:.2%} instead of {separate:.2%}",
            holds=dilos < clearly * separate,
        ),
        Check(
            name="with sharing it loses less again",
            paper="14.70 %",
            here=f"{sharing:.2%}",
            holds=sharing < dilos,
        ),
    ]
