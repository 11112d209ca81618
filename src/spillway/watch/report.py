"""A run as one HTML file that needs nothing else."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from spillway.gate.ledger import Audit
from spillway.watch.facts import Facts
from spillway.watch.history import Asked, history_of
from spillway.watch.plots import plot
from spillway.watch.what_if import Run, WhatIf

_POINTS = 300
_LEARNING = 10  # decisions: prices before that are guesses, and would set the scale
_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--text:#171b21;--soft:#566070;--line:#d9dde3;--blue:#2563c9;
--red:#c0281f;--amber:#b8690a;--green:#1b7f4b}
@media (prefers-color-scheme:dark){:root{--bg:#12161b;--text:#e8ecf1;--soft:#a0abba;--line:#2d3540;
--blue:#6aa5f5;--red:#ff8b80;--amber:#f3b562;--green:#5fd39a}}
body{background:var(--bg);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;
max-width:84rem;padding:0 1rem;font-variant-numeric:tabular-nums}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}h3{margin:1.2rem 0 .3rem}
p{margin:.3rem 0}.soft,figcaption{color:var(--soft)}.good{color:var(--green)}.bad{color:var(--red)}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:right;padding:.3rem .6rem;border-top:1px solid var(--line);vertical-align:top}
th:first-child,td:first-child,.l{text-align:left}
.plots{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr))}
figure{margin:0}figcaption span{margin-left:.8rem}svg{width:100%;height:auto}
svg text{fill:var(--soft);font-size:11px}svg line{stroke:var(--line)}
polyline{fill:none;stroke:var(--blue);stroke-width:1.6}
span.c-delay,span.c-kept,span.c-a-tuple,span.c-waiting{color:var(--blue)}
.c-target{stroke:var(--red);color:var(--red);stroke-dasharray:5 4}
.c-shed,.c-fixed{stroke:var(--amber);color:var(--amber)}
.c-offered,.c-share{stroke:var(--text);color:var(--text)}.c-by-priority{stroke:var(--soft)}
.scroll{overflow-x:auto}
"""


def page_of(facts: Facts) -> str:
    parts = [
        f"<h1>Spillway: {escape(facts.flow)}</h1>",
        f'<p class="soft">{_clock(facts.from_s)} to {_clock(facts.until_s)}, {_cores(facts)}</p>',
        *_verdicts(facts),
        *_curves(facts),
        *_shed(facts),
        *_what_if(facts.what_if),
        *_ledgers(facts.audits),
        *_happened(facts),
    ]
    title = escape(f"Spillway: {facts.flow}")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><main>{''.join(parts)}</main></html>\n"
    )


def _cores(facts: Facts) -> str:
    control: dict[str, Any] = facts.started.get("control", {})
    return f"{facts.started.get('cores', '?')} cores, policy {control.get('policy', '?')}"


def _verdicts(facts: Facts) -> Iterable[str]:
    yield "<h2>Verdict</h2>"
    for one in facts.classes:
        kind = "good" if one.late_ratio == 0.0 else "bad"
        said = f"{one.name} ({one.target}) {one.verdict}"
        yield f'<p class="{kind}"><b>{escape(said)}.</b></p>'
    rows = [
        (one.name, one.target, _s(one.delay_s), _s(one.worst_s), f"{one.late_ratio:.2%}",
         f"{one.offered_tuples:,}", f"{one.shed_tuples:,}", f"{one.shed_ratio:.2%}")
        for one in facts.classes
    ]  # fmt: skip
    heads = ("class", "target", "delay", "worst", "late", "offered", "shed", "share")
    yield _table(heads, rows)
    yield '<p class="soft">Delays are the target’s statistic of each decision’s period.</p>'


def _curves(facts: Facts) -> Iterable[str]:
    seconds = max(60.0, facts.until_s - facts.from_s)
    asked = Asked(seconds=seconds, points=_POINTS)
    history = history_of(facts.story, facts.until_s, asked)
    yield "<h2>Over time</h2>"
    for name, columns in history["classes"].items():
        yield f'<h3>{escape(name)}</h3><div class="plots">'
        times_s = columns["times_s"]
        if "delay_s" in columns:
            delays = {"delay": columns["delay_s"], "target": columns["target_s"]}
            yield plot("Delay", times_s, delays, "s")
            rates = {n: columns[f"{n}_per_s"] for n in ("offered", "kept", "shed")}
            yield plot("Tuples a second", times_s, rates)
            yield plot("Waiting tuples", times_s, {"waiting": columns["waiting"]})
        if "quota" in columns:
            shares = {"share": columns["quota"], "by priority": columns["original"]}
            yield plot("Share of the machine", times_s, shares)
        yield "</div>"
    yield '<h2>What a batch takes</h2><div class="plots">'
    for name in history["queries"]:
        yield _prices(name, facts)
    yield "</div>"


def _prices(query: str, facts: Facts) -> str:
    known = [d.measurement for d in facts.decided if d.measurement.query == query][_LEARNING:]
    step = max(1, len(known) // _POINTS)
    shown = [(m.time_s, m.prices) for m in known[::step] if m.prices is not None]
    times_s = [time_s for time_s, _ in shown]
    fixed = [p.pace * p.fixed_s for _, p in shown]
    kept = [1e6 * p.pace * p.kept_s for _, p in shown]
    return plot(f"{query}: fixed part", times_s, {"fixed": fixed}, "s") + plot(
        f"{query}: a million kept tuples", times_s, {"a tuple": kept}, "s"
    )


def _shed(facts: Facts) -> Iterable[str]:
    yield "<h2>What was shed, and why</h2>"
    if not facts.reasons:
        yield "<p>Nothing was shed.</p>"
        return
    rows = [(query, f"{tuples:,}", reason) for query, reason, tuples in facts.reasons]
    yield _table(("query", "tuples", "reason, without its numbers"), rows, left=(2,))


def _what_if(found: WhatIf | None) -> Iterable[str]:
    if found is None:
        return
    yield "<h2>What would have been</h2>"
    again, recorded = found.again, found.recorded
    yield (
        f"<p>The last {found.seconds / 60:.0f} minutes of arrivals and prices, decided again in"
        f" virtual time. The settings of the run itself shed {again.shed_ratio:.1%} there with"
        f" {again.late_ratio:.1%} late, and {recorded.shed_ratio:.1%} with"
        f" {recorded.late_ratio:.1%} late in the recorded run: the others are to be believed to"
        f" about {abs(again.shed_ratio - recorded.shed_ratio):.1%} of what is shed and"
        f" {abs(again.late_ratio - recorded.late_ratio):.1%} of what is late.</p>"
    )
    runs = (found.recorded, found.again, *found.others)
    rows = [
        (run.what, f"{run.shed_ratio:.2%}", _more(run, found.again), f"{run.late_ratio:.2%}")
        for run in runs
    ]
    yield _table(("", "shed", "beside the settings as they were", "late, of the kept"), rows)


def _more(run: Run, again: Run) -> str:
    more = run.shed_ratio - again.shed_ratio
    if run.what == again.what or run.what.startswith("as it was recorded"):
        return ""
    return "alike" if abs(more) < 0.0005 else f"{abs(more):.2%} {'more' if more > 0 else 'less'}"


def _ledgers(audits: Sequence[Audit]) -> Iterable[str]:
    yield "<h2>Ledgers</h2>"
    rows = [
        (
            audit.gate,
            "exact" if audit.exact else "; ".join(audit.problems[:3]) or "lines are missing",
            *(f"{n:,}" for n in (audit.batch_count, audit.totals.offered, audit.totals.admitted)),
            *(f"{n:,}" for n in (audit.totals.shed, audit.totals.pending, audit.totals.lost)),
        )
        for audit in audits
    ]
    heads = ("gate", "verdict", "batches", "offered", "admitted", "shed", "pending", "lost")
    yield _table(heads, rows, left=(1,)) if rows else "<p>There are none.</p>"


def _happened(facts: Facts) -> Iterable[str]:
    yield "<h2>What happened</h2>"
    rows = [(_clock(one.time_s), one.text) for one in facts.events]
    yield _table(("time", "event"), rows, left=(1,)) if rows else "<p>Nothing unusual.</p>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        kinds = [' class="l"' if number in left else "" for number in range(len(cells))]
        made = (
            f"<{tag}{kind}>{escape(str(cell))}</{tag}>"
            for kind, cell in zip(kinds, cells, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table>{line("th", heads)}{body}</table></div>'


def _s(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
