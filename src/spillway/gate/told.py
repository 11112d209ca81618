"""What a gate was told, written down, and told again to another one.

A gate decides from what it is told alone, so whoever tells it the same gets the same offsets: on
another host, in virtual time, with another version of the code. A recorded run of Spark becomes a
test, and a report of a wrong decision something that can be run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spillway.coding import from_json, to_json
from spillway.gate.arrivals import Arrivals
from spillway.gate.company import ALONE, Company, Led, Part
from spillway.gate.gate import Gate
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting
from spillway.gate.rules import Stretch
from spillway.model import Order
from spillway.ports import ArrivalCurve, LoadManager, Span

Encoded = dict[str, Any]
Write = Callable[[Encoded], None]


class TellingGate(Gate):
    """A gate that writes down what it is told and what it answers."""

    def __init__(self, options: GateOptions, write: Write, law: LoadManager | None = None) -> None:
        super().__init__(options, law)
        self._write = write

    def resume(self, previous: Offset) -> None:
        if self._pace is None:
            self._write({"call": "resume", "previous": encode(previous)})
        super().resume(previous)

    def ended(self, parts: Sequence[Part], *, duration_s: float | None, ended_s: float) -> None:
        told = [to_json(Part, part) for part in parts]
        self._write({"call": "ended", "parts": told, "duration_s": duration_s, "ended_s": ended_s})
        super().ended(parts, duration_s=duration_s, ended_s=ended_s)

    def obey(self, order: Order | None) -> None:
        self._write({"call": "obey", "order": None if order is None else to_json(Order, order)})
        super().obey(order)

    def plan(
        self, previous: Offset, waiting: Waiting, now_s: float, company: Company = ALONE
    ) -> Offset:
        answer = super().plan(previous, waiting, now_s, company)
        told = {"company": _company(company), "answer": encode(answer)}
        self._write({"call": "plan", **_asked(previous, waiting, now_s), **told})
        return answer

    def rest(self, previous: Offset, now_s: float, company: Company = ALONE) -> None:
        before = self._rested
        super().rest(previous, now_s, company)
        if self._rested and not before:  # it is asked at every poll and hears of a rest once
            told = {"previous": encode(previous), "now_s": now_s, "company": _company(company)}
            self._write({"call": "rest", **told})

    def follow(self, previous: Offset, waiting: Waiting, led: Led, now_s: float) -> Offset:
        answer = super().follow(previous, waiting, led, now_s)
        told = {"share": led.share, "reach": led.reach, "answer": encode(answer)}
        self._write({"call": "follow", **_asked(previous, waiting, now_s), **told})
        return answer


def told_again(
    lines: Iterable[Mapping[str, Any]], options: GateOptions | None = None
) -> Iterator[tuple[Encoded, Encoded]]:
    """(what was answered then, what a new gate answers now), for every offset.

    A record begins anew with every start of a query: so does the gate. `options` instead of those
    that the record holds make it another one.
    """
    gate = Gate(options or GateOptions.parse({}))
    for line in lines:
        if line["call"] == "options":
            gate = Gate(options or GateOptions.parse(line["options"]))
            continue
        answer = _tell(gate, line)
        if answer is not None:
            yield line["answer"], encode(answer)


def _tell(gate: Gate, line: Mapping[str, Any]) -> Offset | None:
    call = line["call"]
    if call != "resume" and gate._meter is None:
        raise ValueError(f"'{call}' comes before 'resume'")
    if call == "resume":
        gate.resume(decode(line["previous"]))
    elif call == "ended":
        parts = [from_json(Part, part) for part in line["parts"]]
        gate.ended(parts, duration_s=line["duration_s"], ended_s=line["ended_s"])
    elif call == "obey":
        order = line["order"]
        gate.obey(None if order is None else from_json(Order, order))
    elif call == "rest":
        gate.rest(decode(line["previous"]), line["now_s"], _company_of(line["company"]))
    else:
        previous, waiting = decode(line["previous"]), _waiting(line["waiting"])
        if call == "plan":
            return gate.plan(previous, waiting, line["now_s"], _company_of(line["company"]))
        led = Led(share=line["share"], reach=line.get("reach", 1.0))
        return gate.follow(previous, waiting, led, line["now_s"])
    return None


def _asked(previous: Offset, waiting: Waiting, now_s: float) -> Encoded:
    return {
        "previous": encode(previous),
        "now_s": now_s,
        "waiting": {
            "stretches": [[s.partition, s.start, s.read, s.stop] for s in waiting.stretches],
            "curves": [_curve(p, curve) for p, curve in waiting.arrivals.curves.items()],
            "lost_tuples": waiting.lost_tuples,
        },
    }


def _waiting(value: Mapping[str, Any]) -> Waiting:
    rows = value["stretches"]
    return Waiting(
        stretches=tuple(Stretch(partition=p, start=a, read=r, stop=b) for p, a, r, b in rows),
        arrivals=Arrivals.pool([_curve_of(curve) for curve in value["curves"]]),
        lost_tuples=value["lost_tuples"],
    )


def _company(company: Company) -> Encoded:
    return {
        "pending": [_curve(span.partition, curve) for span, curve in company.pending],
        "admitted_tuples": company.admitted_tuples,
        "shed_tuples": company.shed_tuples,
    }


def _company_of(value: Mapping[str, Any]) -> Company:
    return Company(
        pending=[_curve_of(curve) for curve in value["pending"]],
        admitted_tuples=value["admitted_tuples"],
        shed_tuples=value["shed_tuples"],
    )


def _curve(partition: int, curve: ArrivalCurve) -> list[Any]:
    return [partition, curve.positions.tolist(), curve.times_s.tolist()]


def _curve_of(value: Sequence[Any]) -> tuple[Span, ArrivalCurve]:
    partition, positions, times_s = value
    curve = ArrivalCurve(positions=np.array(positions), times_s=np.array(times_s, dtype=float))
    return Span(partition=partition, start=positions[0], stop=positions[-1]), curve
