"""What is unusual now about a flow's classes and queries, for screen and journal."""

from collections.abc import Callable
from dataclasses import asdict

from spillway.estimates.budget import verdict
from spillway.estimates.flow import budget_of
from spillway.flow.flow import Flow, Query
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.hosts.spark.driver.supervision import LossWatch, condition_of
from spillway.model import Target


class Conditions:
    """`now` has one line by class, and one by query as `queries.NAME`; None: as usual."""

    def __init__(
        self,
        flow: Flow,
        dispatcher: Dispatcher,
        target: Callable[[str], Target],
        waiting: Callable[[str], int | None],
        losses: LossWatch,
        note: Callable[..., None],
    ) -> None:
        self._flow, self._dispatcher, self._target = flow, dispatcher, target
        self._waiting, self._losses, self._note = waiting, losses, note
        self.now: dict[str, str | None] = {}

    def use(self, flow: Flow) -> None:
        """Queries have come or gone."""
        self._flow = flow

    def look(self, progress: list[BatchProgress], batches: list[DeliveredBatch]) -> None:
        """Journal what has changed since the last look."""
        for name in self._flow.classes:
            found = self._of_class(name)
            if self._is_new(name, found):
                self._note("condition", class_name=name, condition=found or "as usual")
        for name, query in self._flow.queries.items():
            said = self._of_budget(name, query, batches)
            if self._is_new(f"queries.{name}", said):
                held = said or "delay target and error budget hold"
                self._note("budget", query=name, verdict=held)
        for seen in progress:
            for gate, losses in self._losses.changed(seen):
                self._note("losses", gate=gate, **asdict(losses))

    def _is_new(self, place: str, found: str | None) -> bool:
        before, self.now[place] = self.now.get(place), found
        return found != before

    def _of_class(self, name: str) -> str | None:
        desk, queries = self._dispatcher, self._flow.queries
        own = [query for query, given in queries.items() if given.class_name == name]
        waiting = [self._waiting(query) for query in own]
        known = [tuples for tuples in waiting if tuples is not None]
        return condition_of(
            self._target(name),
            desk.loads(name).values(),
            desk.silent_s(name),
            waiting_tuples=sum(known) if len(known) == len(own) else None,
            busy=any(map(desk.is_running, own)),
        )

    def _of_budget(self, name: str, query: Query, batches: list[DeliveredBatch]) -> str | None:
        """What the query's last batches say about its error budget."""
        budget = budget_of(query)
        if budget is None:
            return None
        recent = [b for b in batches[-200:] if b.gate.startswith(f"{name}/")][-10:]
        kept = sum(b.kept_tuples for b in recent)
        if kept == 0:
            return None
        return verdict(
            budget,
            kept_fraction=kept / sum(b.offered_tuples for b in recent),
            delay_s=sum(b.mean_delay_s * b.kept_tuples for b in recent) / kept,
            target_s=self._target(query.class_name).delay_s,
        )
