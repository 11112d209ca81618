"""`spillway demo`: the same overload with every row kept, as Spark does, and through the gate."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.run import run_flow, show_summary, summarise
from spillway.cli.screen import console, errors, print_json
from spillway.watch.serving import opened_door

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spillway.flow.flow import Flow
    from spillway.gate.ledger import Audit
    from spillway.gate.offsets import Offset
    from spillway.hosts.spark.driver.progress import DeliveredBatch

WARM_S, OVERLOAD_S, CALM_S = 35, 40, 15
LOW_PER_S, HIGH_PER_S = 500_000, 20_000_000
TARGET_S = 2.0
PLAIN, GATED = "every row kept", "with Spillway"

EXPLANATION = f"""\
One windowed aggregate on Spark Structured Streaming, twice with the same load:
  {WARM_S} s   {LOW_PER_S:,} rows/s: it keeps up (the first batches are slow: Java warms up)
  {OVERLOAD_S} s   {HIGH_PER_S:,} rows/s: more than this machine can take
  {CALM_S} s   {LOW_PER_S:,} rows/s again
First every row is kept, as Spark alone does: it falls behind, for as long as the overload lasts.
Then a gate drops exactly what must go, keeps a mean delay of {TARGET_S:g} s, and accounts for every
row.
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one of the two runs delivered, and what its ledger says."""

    name: str
    batches: "Sequence[DeliveredBatch]"
    offsets: "Sequence[Offset]"


def demo(
    out: Annotated[Path, typer.Option(help="folder for the picture and the runs")] = Path(
        "out/demo"
    ),
    plain: Annotated[bool, typer.Option(help="run it with every row kept first")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Show what Spillway does: three minutes and a half on this machine, on real Spark."""
    from spillway.hosts.spark.files import Folder, audits

    Folder(root=out.absolute()).require_free()
    if not as_json:
        console.print(EXPLANATION, highlight=False)
    shutil.rmtree(out, ignore_errors=True)
    # Long after the overload it would still work off what waits: it is not waited for.
    runs = [_run(PLAIN, out / "plain", WARM_S + OVERLOAD_S, quiet=as_json)[0]] if plain else []
    gated, summary = _run(GATED, out, WARM_S + OVERLOAD_S + CALM_S, quiet=as_json)
    pictured = _save_picture([*runs, gated], out)
    folder = Folder(root=out.absolute())
    ledger = folder.ledger("by_key", "readings")
    [audit] = audits(ledger, folder.checkpoint("by_key"))
    if as_json:
        told = {"exact": audit.exact} | asdict(audit.totals)
        print_json(
            summary | {"audit": told, "worst_s": {r.name: _worst_s(r) for r in (*runs, gated)}}
        )
    else:
        show_summary(summary, out)
        _show_audit(audit, ledger)
        for run in (*runs, gated):
            said = f"{run.name}: the worst mean delay of a batch was {_worst_s(run):.1f} s"
            console.print(said, highlight=False)
        console.print(pictured, highlight=False, markup=False)
    if not audit.exact:
        raise typer.Exit(1)


def _run(name: str, out: Path, seconds: float, *, quiet: bool) -> tuple[Run, dict[str, Any]]:
    from spillway.hosts.spark.files import chains

    errors.print(f"{name}: {seconds:.0f} s", style="bold", highlight=False)
    flow = _flow("none" if name == PLAIN else "predictive")
    door = opened_door(out, None, None)
    application = run_flow(flow, "demo", out, seconds, quiet=quiet, door=door)
    ledger = application.folder.ledger("by_key", "readings")
    [offsets] = chains(ledger, application.folder.checkpoint("by_key")).values()
    run = Run(name=name, batches=list(application.batches), offsets=offsets)
    return run, summarise(application)


def _flow(manager: str) -> "Flow":
    from spillway.flow.flow import Flow

    rate = f"0:{LOW_PER_S},{WARM_S}:{HIGH_PER_S},{WARM_S + OVERLOAD_S}:{LOW_PER_S}"
    readings = {"source": "synthetic", "options": {"rate": rate}, "event_time": "event_time"}
    sql = (
        "SELECT window(event_time, '10 seconds') AS period, key, count(*) AS n,"
        " avg(value) AS mean FROM readings GROUP BY window(event_time, '10 seconds'), key"
    )
    by_key = {"class": "gold", "mode": "update", "sink": {"type": "noop"}, "sql": sql}
    return Flow.model_validate(
        {
            "streams": {"readings": readings},
            "classes": {"gold": {"delay": f"{TARGET_S}s", "manager": manager}},
            # It is overload that is shown: in parts this query takes all of it.
            "queries": {"by_key": {**by_key, "combine": False}},
        }
    )


def _worst_s(run: Run) -> float:
    """After the time in which Java warms up."""
    settled = [b.mean_delay_s for b in run.batches if b.ended_s > _began_s(run) + WARM_S]
    return max(settled, default=0.0)


def _began_s(run: Run) -> float:
    return run.offsets[0].began_us / 1e6


def _save_picture(runs: Sequence[Run], out: Path) -> str:
    """Says where it is, or what it takes."""
    if find_spec("matplotlib") is None:
        return "no picture without matplotlib: pip install 'spillway-spark[pictures]'"
    figure = picture(runs)
    figure.savefig(out / "demo.png", dpi=120)
    figure.savefig(out / "demo.svg")
    return f"the picture is {out / 'demo.png'}"


def _show_audit(audit: "Audit", ledger: Path) -> None:
    totals, verdict = audit.totals, "exact" if audit.exact else "NOT EXACT"
    console.print(
        f"audit of {len(audit.batches)} batches against Spark's offset log: offered"
        f" {totals.offered:,} = kept {totals.admitted:,} + shed {totals.shed:,} + waiting"
        f" {totals.pending:,}: {verdict}; batch by batch:",
        highlight=False,
    )
    console.print(f"  spillway ledger {_relative(ledger)}", highlight=False)


def picture(runs: Sequence[Run]) -> "Figure":
    """Delay against the target, what waits, and what was offered and kept by its arrival."""
    from spillway.pictures import label, panels, target_line

    figure, (delays, waiting, rates) = panels(3, height=2.2)
    for run, colour in zip(reversed(runs), ("black", "tab:red"), strict=False):
        ended_s = [b.ended_s - _began_s(run) for b in run.batches]
        mean_s = [b.mean_delay_s for b in run.batches]
        delays.plot(ended_s, mean_s, marker=".", color=colour, label=run.name)
        planned_s = [o.planned_us / 1e6 - _began_s(run) for o in run.offsets]
        millions = [o.totals.pending / 1e6 for o in run.offsets]
        waiting.plot(planned_s, millions, marker=".", color=colour, label=run.name)
    target_line(delays, TARGET_S)
    delays.set_ylim(bottom=0.0)
    label(delays, y="delay (s)", title="mean delay of the rows of each batch")
    label(waiting, y="million rows", title="rows that wait")
    ends_s, offered, kept = by_arrival(runs[-1].offsets)
    for name, per_s in (("offered", offered), ("kept", kept)):
        rates.step(ends_s, [rate / 1e6 for rate in per_s], where="pre", label=name)
    title = f"what arrived and what of it was kept, {runs[-1].name}"
    label(rates, x="time (s)", y="million rows/s", title=title)
    for axis in (delays, waiting, rates):
        axis.legend(fontsize=8)
    return figure


def by_arrival(offsets: "Sequence[Offset]") -> tuple[list[float], list[float], list[float]]:
    """(end, rows/s that arrived up to then, rows/s of those that were kept), batch by batch.

    A batch takes what had arrived when it was planned; what arrives while it runs is the next
    one's, however long it takes.
    """
    ends_s, offered, kept = [], [], []
    for before, after in pairwise(offsets):
        span_s = (after.planned_us - before.planned_us) / 1e6
        if span_s > 0.0:
            ends_s.append((after.planned_us - offsets[0].planned_us) / 1e6)
            offered.append((after.totals.offered - before.totals.offered) / span_s)
            kept.append((after.totals.admitted - before.totals.admitted) / span_s)
    return ends_s, offered, kept


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
