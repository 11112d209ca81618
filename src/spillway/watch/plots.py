"""Curves as SVG, for a file that needs nothing else."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 620, 170, 52, 8, 10, 20
Values = Sequence[float | None]


def plot(title: str, times_s: Sequence[float], curves: Mapping[str, Values], unit: str = "") -> str:
    """`curves` by their names, which are also their classes in the style sheet."""
    known = [value for values in curves.values() for value in values if value is not None]
    if not known or len(times_s) < 2:
        return f"<figure><figcaption>{escape(title)}: nothing known</figcaption></figure>"
    most = max(known) or 1.0
    span_s = times_s[-1] - times_s[0]

    def x(time_s: float) -> float:
        return _LEFT + (time_s - times_s[0]) / span_s * (_WIDE - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HIGH - _BOTTOM - value / most * (_HIGH - _BOTTOM - _TOP)

    lines = [_axis(y(share * most), share * most, unit) for share in (0.0, 0.5, 1.0)]
    for name, values in curves.items():
        points = [(t, v) for t, v in zip(times_s, values, strict=True) if v is not None]
        path = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in points)
        lines.append(f'<polyline class="{_css(name)}" points="{path}"/>')
    ends = ((_LEFT, "start", times_s[0]), (_WIDE - _RIGHT, "end", times_s[-1]))
    for at, anchor, time_s in ends:
        lines.append(
            f'<text x="{at}" y="{_HIGH - 4}" text-anchor="{anchor}">{_clock(time_s)}</text>'
        )
    keys = "".join(f'<span class="{_css(name)}">{escape(name)}</span>' for name in curves)
    label = f"{title}, at most {most:.4g} {unit}"
    return (
        f"<figure><figcaption>{escape(title)} {keys}</figcaption>"
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(label)}">'
        f"{''.join(lines)}</svg></figure>"
    )


def _axis(at: float, value: float, unit: str) -> str:
    text = f"{_short(value)} {unit}".strip()
    return (
        f'<line x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text x="{_LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
    )


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, tz=UTC).strftime("%m-%d %H:%M:%S UTC")


def _css(name: str) -> str:
    return f"c-{''.join(c if c.isalnum() else '-' for c in name)}"
