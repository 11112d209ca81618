"""More or fewer executors under running queries: looks every period, in a thread of its own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from spillway.clock import Clock
from spillway.cluster.actions import Shed
from spillway.cluster.scaling.bridge import Bridge
from spillway.cluster.scaling.catalog import POLICIES
from spillway.cluster.scaling.executors import Executor, Resizer, view_of
from spillway.cluster.scaling.fleet import Fleet, Request
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.scaling.usage import QueryUse, RanBatch, Terms, Usage
from spillway.flow.scale import Scale
from spillway.hosts.spark.driver.executors import SparkExecutors
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch, unread_tuples
from spillway.journal.entries import Entry
from spillway.model import parse_duration_s

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application


class Executors(Resizer, Protocol):
    """A resizer that also knows what the executors have done."""

    @property
    def task_s(self) -> float: ...


class Scaling:
    """Hears of every batch; looks at the load once a period, and asks for executors.

    What is too much until they come is shed at the gates, as always: nothing here waits for them.
    `note` is told of everything that happens.
    """

    def __init__(
        self,
        executors: Executors,
        scale: Scale,
        terms: Callable[[], Mapping[str, Terms]],
        note: Callable[..., None],
        clock: Clock,
        *,
        shortest_target_s: float,
    ) -> None:
        self._executors, self._terms, self._note, self._clock = executors, terms, note, clock
        self._period_s = parse_duration_s(scale.period)
        self._usage, self._lock = Usage(), threading.Lock()
        policy = POLICIES[scale.policy](scale.settings, shortest_target_s)
        bridge = None if scale.prices is None else Bridge(scale.prices)
        self._scaler = Scaler(policy, scale.settings, bridge=bridge)
        self.fleet = Fleet(
            scale.min,
            scale.max,
            patience_s=parse_duration_s(scale.patience),
            retry_s=parse_duration_s(scale.retry),
            warm_s=parse_duration_s(scale.grace),
        )
        self._there: tuple[Executor, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spillway-scaling", daemon=True)

    def start(self) -> None:
        self._there = tuple(self._executors.executors())
        self._ask(self.fleet.begin(self._there))
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    # -- what happens, told by others

    def entry(self, entry: Entry) -> None:
        pass

    def batch(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None:
        """Task time is read with every batch: between batches it would be that of half of one."""
        if not found:
            return
        there = self._executors.executors()
        kept = sum(batch.kept_tuples for batch in found)
        late_s = sum(batch.mean_delay_s * batch.kept_tuples for batch in found)
        ran = RanBatch(
            query=progress.query,
            planned_s=min(batch.planned_s for batch in found),
            ended_s=max(batch.ended_s for batch in found),
            offered_tuples=sum(batch.offered_tuples for batch in found),
            kept_tuples=kept,
            waiting_tuples=unread_tuples(progress),
            mean_delay_s=late_s / kept if kept else 0.0,
            task_s=self._executors.task_s,
            cores=sum(one.cores for one in there),
            cold=self.fleet.is_cold(there, self._clock.now_s()),
        )
        with self._lock:
            self._usage.heard(ran)

    # -- every period

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s):
            try:
                self.look()
            except Exception as error:  # one look that failed is not the last one
                if not self._stopping.is_set():
                    self._note("failed", error=repr(error))

    def look(self) -> None:
        now_s = self._clock.now_s()
        self._there = tuple(self._executors.executors())
        seen = self.fleet.observe(self._there, now_s)
        if seen.lost:
            self._note("executors lost", names=list(seen.lost))
        if seen.missing:
            self._note("executors missing", missing=seen.missing, there=len(self._there))
        if seen.request is not None:
            self._ask(seen.request)
        if not self._there:
            return
        warm = self.fleet.warm(self._there, now_s)
        with self._lock:
            uses = self._usage.uses(self._terms(), now_s)
        if not uses or not warm:
            return
        view = view_of(warm, self.fleet.coming(len(warm)), uses, now_s)
        actions = self._scaler.tick(view, self.fleet.most)
        request = self.fleet.decide((one for one in actions if not isinstance(one, Shed)), now_s)
        if request is not None:
            self._ask(request, **_figures(uses))

    def _ask(self, request: Request, **why: Any) -> None:
        self._executors.resize(request.total, request.leaving)
        self._note(
            "executors",
            total=request.total,
            released=list(request.leaving),
            reason=request.reason,
            **why,
        )


def _figures(uses: Sequence[QueryUse]) -> dict[str, dict[str, float]]:
    """What the request was made from, by query."""
    return {
        "wanted_cores": {use.name: round(use.wanted_cores, 2) for use in uses},
        "core_us_per_tuple": {use.name: round(1e6 * use.core_s_per_tuple, 1) for use in uses},
        "usable": {use.name: round(use.usable, 2) for use in uses},
    }


def scaling_of(application: "Application", scale: Scale) -> Scaling:
    """Of a flow's queries, by what is said of their classes at the moment."""

    def terms() -> Mapping[str, Terms]:
        return {
            name: Terms(
                class_name=query.class_name,
                priority=application.classes[query.class_name].priority,
                target=application.target(query.class_name),
            )
            for name, query in application.flow.queries.items()
        }

    return Scaling(
        SparkExecutors(application.spark),
        scale,
        terms,
        application.event,
        application.clock,
        shortest_target_s=min(given.target.delay_s for given in terms().values()),
    )
