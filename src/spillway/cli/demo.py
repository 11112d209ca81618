"""`spillway demo`: a query that is offered far more than the machine can take."""

import shutil
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.run import run_flow, show_summary, summarise
from spillway.cli.screen import console, print_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spillway.flow.flow import Flow
    from spillway.gate.ledger import Audit
    from spillway.hosts.spark.driver.progress import DeliveredBatch

WARM_S, OVERLOAD_S, CALM_S = 35, 40, 15
LOW_PER_S, HIGH_PER_S = 500_000, 20_000_000
TARGET_S = 2.0

EXPLANATION = f"""\
One windowed aggregate on Spark Structured Streaming, with a target: a mean delay of {TARGET_S:g} s.
  {WARM_S} s   {LOW_PER_S:,} rows/s: it keeps up (the first batches are slow: Java warms up)
  {OVERLOAD_S} s   {HIGH_PER_S:,} rows/s: more than this machine can take
  {CALM_S} s   {LOW_PER_S:,} rows/s again
Plain Spark would fall behind in the middle part, without bound. Spillway drops exactly what must
go, keeps the target, and accounts for every row.
"""


def demo(
    out: Annotated[Path, typer.Option(help="folder for the picture and the run")] = Path(
        "out/demo"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Show what Spillway does: a minute and a half on this machine, on real Spark."""
    from spillway.hosts.spark.files import Folder, audits

    Folder(root=out.absolute()).require_free()
    if not as_json:
        console.print(EXPLANATION, highlight=False)
    shutil.rmtree(out, ignore_errors=True)
    seconds = float(WARM_S + OVERLOAD_S + CALM_S)
    application = run_flow(_flow(), "demo", out, seconds, quiet=as_json)
    summary: dict[str, Any] = summarise(application)
    pictured = _save_picture(list(application.batches), out)
    folder = application.folder
    ledger, checkpoint = folder.ledger("by_key", "readings"), folder.checkpoint("by_key")
    [audit] = audits(ledger, checkpoint)
    if as_json:
        print_json(summary | {"audit": asdict(audit.totals) | {"exact": audit.exact}})
    else:
        show_summary(summary, out)
        _show_audit(audit, ledger)
        console.print(pictured, highlight=False, markup=False)
    if not audit.exact:
        raise typer.Exit(1)


def _flow() -> "Flow":
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
            "classes": {"gold": {"delay": f"{TARGET_S}s"}},
            "queries": {"by_key": by_key},
        }
    )


def _save_picture(batches: "list[DeliveredBatch]", out: Path) -> str:
    """Says where it is, or what it takes."""
    if find_spec("matplotlib") is None:
        return "no picture without matplotlib: pip install 'spillway-spark[pictures]'"
    figure = picture(batches)
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


def picture(batches: "list[DeliveredBatch]") -> "Figure":
    """Delay against the target, and what was offered and kept, batch by batch."""
    from spillway.pictures import label, panels, target_line

    start_s = batches[0].ended_s - batches[0].duration_s
    times_s = [b.ended_s - start_s for b in batches]
    figure, (delays, rates) = panels(2)
    delays.plot(times_s, [b.mean_delay_s for b in batches], marker=".", color="black", label="mean")
    target_line(delays, TARGET_S)
    delays.set_ylim(0.0, min(3.0 * TARGET_S, 1.1 * max(b.mean_delay_s for b in batches)))
    label(delays, y="delay (s)", title="delay of the rows of each batch")
    delays.legend(fontsize=8)
    gaps_s = [max(b.duration_s, 1e-3) for b in batches]
    for name, counts in (
        ("offered", [b.offered_tuples for b in batches]),
        ("kept", [b.kept_tuples for b in batches]),
    ):
        per_s = [count / gap_s / 1e6 for count, gap_s in zip(counts, gaps_s, strict=True)]
        rates.step(times_s, per_s, where="pre", label=name)
    label(rates, x="time (s)", y="million rows/s", title="what was offered and what was kept")
    rates.legend(fontsize=8)
    return figure


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
