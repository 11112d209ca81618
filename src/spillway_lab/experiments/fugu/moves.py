"""fugu-moves: the same scalers with moves that pause and with moves that do not."""

from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway.report import Table
from spillway_lab.experiments.fugu.market import market_workload
from spillway_lab.experiments.fugu.runs import FIGURES, figures_of, scaler_of
from spillway_lab.experiments.report import Check, Experiment, Report, Setup
from spillway_lab.simulated_cluster.moves import MoveProtocol, PauseAndReplay, UniMiCo
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling

POLICIES = ("local thresholds", "Sarsa", "true rate")
PROTOCOLS: dict[str, MoveProtocol] = {"pause and replay": PauseAndReplay(), "UniMiCo": UniMiCo()}
OVERLOAD = (
    "this percentile is made by overload more than by pauses, and which way it goes changes with"
    " the seed; a move without a pause keeps both hosts busy for a window, so relief comes later"
)


def moves(setup: Setup) -> Report:
    workload = market_workload("day1", setup.seed)
    runs: dict[tuple[str, str], ScalingRun] = {}
    for policy in POLICIES:
        for name, protocol in PROTOCOLS.items():
            scaler = scaler_of(policy, ScalingSettings(), Learning())
            runs[policy, name] = run_scaling(workload, scaler, protocol=protocol)
            setup.progress(policy, len(runs) / (len(POLICIES) * len(PROTOCOLS)))
    rows = [(*key, *figures_of(run)) for key, run in runs.items()]
    columns = ("scaler", "move", *FIGURES)
    return Report(
        experiment="fugu-moves",
        setup=setup,
        results={f"{policy}, {name}": run.summary() for (policy, name), run in runs.items()},
        checks=[_calmer(runs, percent) for percent in (50, 90)],
        tables=[Table(title="two ways to move an operator, first day", columns=columns, rows=rows)],
    )


def _calmer(runs: dict[tuple[str, str], ScalingRun], percent: int) -> Check:
    found = [
        policy
        for policy in POLICIES
        if runs[policy, "UniMiCo"].delay_percentile_s(percent)
        < runs[policy, "pause and replay"].delay_percentile_s(percent)
    ]
    return Check(
        name=f"moves that do not pause lower the {percent}th percentile",
        paper="(beyond the paper)",
        here=f"for {', '.join(found) or 'none'}; {len(found)} of {len(POLICIES)} scalers",
        holds=len(found) == len(POLICIES),
        why_not=OVERLOAD,
    )


EXPERIMENTS = (
    Experiment(
        name="fugu-moves",
        title="moves that pause and replay against UniMiCo moves",
        source="FUGU 2014 section II, thesis chapter 7",
        run=moves,
    ),
)
