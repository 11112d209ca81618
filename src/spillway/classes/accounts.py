"""What the driver knows of the queries, from what their gates report. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field

from spillway.classes.balance import QueryLoad
from spillway.model import Delays, Report

RATE_MEMORY_S = 5.0  # offered rates are smoothed over this time


@dataclass(kw_only=True)
class Period:
    """One class since the last look."""

    shed_tuples: int = 0
    busy_s: float = 0.0
    delays: list[Delays] = field(default_factory=list)


@dataclass(kw_only=True)
class _Account:
    last: Report
    rate_per_s: float | None = None  # offered; None before two reports


class Accounts:
    def __init__(self, classes: Callable[[], list[str]]) -> None:
        self._classes = classes
        self._queries: dict[str, _Account] = {}
        self._periods: dict[str, Period] = {}
        self._last_tuple_s: dict[str, float] = {}  # by class: when a report showed a new one

    def heard(self, report: Report, now_s: float) -> None:
        """Counts are since a query's first start: its first report is the zero."""
        account = self._queries.get(report.query)
        before = account.last if account is not None else None
        known = before.offered_tuples if before is not None else 0
        if report.offered_tuples > known:
            self._last_tuple_s[report.class_name] = now_s
        period = self._periods.setdefault(report.class_name, Period())
        for batch in report.ended:
            period.busy_s += batch.record.duration_s
            period.delays += batch.delays
        if account is None or before is None:
            self._queries[report.query] = _Account(last=report)
            return
        period.shed_tuples += max(0, report.shed_tuples - before.shed_tuples)
        elapsed_s = report.time_s - before.time_s
        if elapsed_s > 0.0:
            rate = max(0, report.offered_tuples - before.offered_tuples) / elapsed_s
            old = rate if account.rate_per_s is None else account.rate_per_s
            share = min(1.0, elapsed_s / RATE_MEMORY_S)
            account.rate_per_s = old + share * (rate - old)
        account.last = report

    def left(self, query: str) -> None:
        self._queries.pop(query, None)

    def take_periods(self) -> dict[str, Period]:
        """What happened in each class since this was asked last."""
        taken, self._periods = self._periods, {}
        return {name: taken.get(name, Period()) for name in self._classes()}

    def silent_s(self, class_name: str, now_s: float) -> float | None:
        """Time since the class was offered a tuple; None when it never was."""
        last_s = self._last_tuple_s.get(class_name)
        return None if last_s is None else now_s - last_s

    def loads(
        self, class_name: str, now_s: float, is_running: Callable[[str], bool]
    ) -> dict[str, QueryLoad]:
        """What each query of a class is offered and what its batches cost, where that is known."""
        found = {}
        for query, account in self._queries.items():
            report = account.last
            prices = report.prices
            if report.class_name != class_name or prices is None:
                continue
            # A query with pending tuples asks at every poll: silent and idle means none.
            quiet = now_s - report.time_s > RATE_MEMORY_S and not is_running(query)
            found[query] = QueryLoad(
                rate_per_s=0.0 if quiet else account.rate_per_s or 0.0,
                fixed_s=prices.pace * prices.fixed_s,
                cost_s=prices.pace * (prices.kept_s + prices.scanned_s),
                least_cost_s=prices.pace * prices.least_kept_s,
                at_most=1.0,
                overloaded=report.overloaded,
                gives_way=report.gives_way and not quiet,
            )
        return found
