"""Classes over the queries of somebody's own application: they start and end as it likes."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import Control, Flow, Query, ServiceClass, SparkSettings
from spillway.hosts.spark.attached import announce
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.progress import BatchProgress, delivered
from spillway.hosts.spark.files import Folder
from spillway.logs.saying import say_once
from spillway.model import Order, Report

Door = Callable[[Application], AbstractContextManager[str]]  # serves it; gives the address


class Attachment(Application):
    """A query belongs to the class that option `class` of its gates names, from its first report
    on; where nothing answers, its gates decide alone, as they did before."""

    def __init__(
        self,
        spark: SparkSession,
        classes: Mapping[str, ServiceClass],
        control: Control,
        folder: Folder,
        door: Door | None = None,
    ) -> None:
        flow = Flow.model_construct(
            streams={},
            classes=dict(classes),
            queries={},
            control=control,
            spark=SparkSettings(),
            cluster=None,
        )
        self._coming = threading.Lock()
        self._folder_lock = folder.lock()
        self._folder_lock.take()
        super().__init__(flow, spark, folder)
        java = spark.sparkContext._jvm.java.lang.ProcessHandle  # type: ignore[union-attr]
        self._place = announce(int(java.current().pid()), self._channel.path)
        self.before_detaching = ExitStack()  # is closed then
        self.start()
        self.url = None if door is None else self.before_detaching.enter_context(door(self))

    def answer(self, report: Report) -> Order:
        if report.class_name not in self.classes:
            unknown = unknown_name("class", report.class_name, self.classes)
            say_once(f"a query's gate decides alone: {unknown}")
            raise SpillwayError(str(unknown))
        if report.query not in self.flow.queries:
            self._join(report)
        return super().answer(report)

    def detach(self) -> None:
        """The gates decide alone again, with what they were told last."""
        self._place.unlink(missing_ok=True)
        self.before_detaching.close()
        self.stop()
        self._folder_lock.release()

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self.detach()

    def _join(self, report: Report) -> None:
        given = Query.model_construct(class_name=report.class_name, sql="")
        with self._coming:
            self._streams[report.query] = ()
            queries = {**self.flow.queries, report.query: given}
            self._use(self.flow.model_copy(update={"queries": queries}))
            self.states.begun_s.setdefault(report.query, report.time_s)
        self.event("joined", query=report.query, class_name=report.class_name)

    def _on_progress(self, progress: BatchProgress) -> None:
        """Spark may know the query by another name than its gates do."""
        for batch in delivered(progress)[:1]:
            super()._on_progress(replace(progress, query=batch.gate.partition("/")[0]))
