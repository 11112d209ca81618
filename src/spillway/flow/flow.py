"""The flow: streams, classes and queries. What a flow file says, checked and typed.

Every key is declared here once, with unit, default and range; options of logs, gate and sinks are
declared where they are read. The JSON Schema and the reference in docs/ are made from both.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from spillway.errors import SpillwayError
from spillway.gate.rules import Policy
from spillway.gate.shedders import catalog
from spillway.gate.shedders.expressions import columns_of
from spillway.load import laws
from spillway.logs.catalog import MODULES
from spillway.model import Target, parse_duration_s
from spillway.options import MOST_TEXT

Scalar = str | int | float | bool


def _valid_target(text: str) -> str:
    try:
        Target.parse(text)
    except SpillwayError as error:
        raise ValueError(str(error)) from error
    return text


def _valid_duration(text: str) -> str:
    try:
        parse_duration_s(text)
    except SpillwayError as error:
        raise ValueError(str(error)) from error
    return text


def _valid_utility(text: str) -> str:
    try:
        columns_of(text)
    except SpillwayError as error:
        raise ValueError(str(error)) from error
    return text


def _valid_wait(text: str) -> str:
    return text if text == NONE else _valid_duration(text)


def _valid_master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise ValueError(
            "it must be local, local[4], local[*,4], yarn, spark://host:port or k8s://url"
        )
    return text


_MASTER = re.compile(
    r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?|local-cluster\[[0-9, ]+\]|yarn|(spark|k8s)://\S+"
)
NONE = "0s"
MOST_NAMES = 10_000  # of streams, of classes and of queries: far beyond what one driver runs
Duration = Annotated[str, AfterValidator(_valid_duration)]
Utility = Annotated[str, Field(min_length=1), AfterValidator(_valid_utility)]
TargetText = Annotated[str, AfterValidator(_valid_target)]
Master = Annotated[str, AfterValidator(_valid_master)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
SqlText = Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]


class OneOf:
    """A name out of a registry. The registry stays the only list."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.literal_schema([*self.names])


class Part(BaseModel):
    """A part of a flow: unknown keys are errors, values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


class Stream(Part):
    """A named log of tuples."""

    source: Annotated[str, OneOf(MODULES)] | None = Field(
        None, description="the log behind the stream"
    )
    from_sql: SqlText | None = Field(
        None,
        description="a derived stream instead of a log: SELECT ... FROM stream WHERE ...",
    )
    options: dict[str, Scalar] = Field(
        {},
        max_length=1000,
        description="options of the log and of the gate, as in docs/logs.md and docs/gate.md",
    )
    columns: dict[Name, str] | None = Field(
        None, description="column name to Spark SQL type; the log's own columns by default"
    )
    event_time: Name | None = Field(None, description="the column with the event time")
    watermark: Duration = Field("10s", description="how late event times may be")
    policy: Policy = Field(
        "uniform", description="which tuples go: a uniform sample stays, or the newest"
    )
    shedder: Annotated[str, OneOf(catalog.names())] = Field(
        catalog.UNIFORM, description="how tuples are chosen, as in docs/shedding.md"
    )
    key: Name | None = Field(
        None, description="column of the keys (shedder key) or of the groups (shedder strata)"
    )
    utility: Utility | None = Field(
        None, description="shedder utility: expression; the least goes first"
    )
    window: Duration | None = Field(
        None, description="shedder windows: how much event time stays or goes as a whole"
    )
    epoch: Duration | None = Field(
        None, description="shedder key: how long the same keys stay; one minute by default"
    )
    min_keep: float = Field(0.0, ge=0.0, le=1.0, description="never drop below this fraction")

    @model_validator(mode="after")
    def _has_an_origin(self) -> "Stream":
        if (self.source is None) == (self.from_sql is None):
            raise ValueError(
                f"a stream needs either a source (one of {', '.join(MODULES)}) or from_sql"
            )
        if self.from_sql is not None and (self.options or self.columns):
            raise ValueError("a derived stream takes no options and no columns: its SQL says both")
        return self


class ServiceClass(Part):
    """Priority and delay target, shared by the queries of the class."""

    delay: TargetText = Field(description="delay target with its statistic: '2s' or 'p99 2s'")
    priority: int = Field(1, ge=1, le=1000, description="share of the machine, relative to others")
    manager: str | dict[str, Any] = Field(
        "predictive",
        description="the load manager: its name, or {law: name} with values for its parameters",
    )
    lend: float = Field(
        1.0, ge=0.0, le=1.0, description="the largest part of its share that the class lends"
    )
    min_keep: float = Field(
        0.0, ge=0.0, le=1.0, description="its queries never drop below this fraction of a stream"
    )
    shedding: Literal["active", "paused"] = Field(
        "active", description="paused: its queries drop nothing, and their delay gives way"
    )

    @field_validator("manager", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if not isinstance(value, str | dict):
            raise ValueError("it must be a law's name, or {law: name} with its parameters")
        try:
            law, settings = _law(value)
            laws.checked(law, settings)
        except SpillwayError as error:
            raise ValueError(str(error)) from None
        return value

    @property
    def law(self) -> tuple[str, dict[str, Any]]:
        """The load manager's name and what its parameters were given."""
        return _law(self.manager)


def _law(manager: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(manager, str):
        return manager, {}
    if len(manager) > 100:
        raise SpillwayError(f"a manager has {len(manager)} keys: no law has so many parameters")
    if not isinstance(manager.get("law"), str):
        raise SpillwayError("a manager with parameters names its law: {law: ctrl, headroom: 0.9}")
    return manager["law"], {key: value for key, value in manager.items() if key != "law"}


class Sink(Part):
    """Where results go. The other keys are options of the sink that `type` names."""

    model_config = ConfigDict(extra="allow")

    type: str = Field("console", description="the sink, as below")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Query(Part):
    """SQL over streams, running for ever: one query, or a template with its instances."""

    sql: SqlText | None = Field(None, description="one query")
    template: SqlText | None = Field(
        None, description="SQL with :parameters; every instance is a query"
    )
    instances: str | list[dict[Name, Scalar | None]] | None = Field(
        None, description="values of a template's parameters: a list, or the path of a CSV file"
    )
    class_name: Name = Field("default", alias="class", description="the service class")
    sink: Sink = Field(Sink(), description="where results go")
    mode: Literal["append", "update", "complete"] = Field("append", description="output mode")
    dry_run: bool = Field(False, description="decide and journal, drop nothing")
    estimate: bool = Field(
        False, description="aggregates as estimates with bounds, as in docs/estimates.md"
    )
    confidence: float = Field(0.95, ge=0.5, le=0.999, description="of the bounds of estimates")
    error: str | None = Field(None, description="error budget of sums and counts, such as '5%'")
    error_tuples: int = Field(
        1000, ge=1, description="the smallest group, in offered tuples, that the budget covers"
    )
    gives: Literal["delay", "error"] = Field(
        "error", description="which one gives when delay target and error budget cannot both hold"
    )

    @model_validator(mode="after")
    def _is_one_query_or_a_template(self) -> "Query":
        if (self.sql is None) == (self.template is None):
            raise ValueError("a query needs exactly one of sql and template")
        if (self.template is None) != (self.instances is None):
            raise ValueError("template and instances go together")
        if self.estimate and self.template is not None:
            raise ValueError("estimate works on sql, not on a template")
        return self

    @property
    def text(self) -> str:
        """The SQL as it was written."""
        return self.sql or self.template or ""


class Control(Part):
    """The control period, and how capacity moves between classes."""

    period: Duration = Field(
        "1s",
        description="control period: laws that have one decide at the first batch after it, at the"
        " gate; the driver looks at the classes once a period",
    )
    policy: Literal["dilos", "absolute", "hybrid", "guaranteed", "none"] = Field(
        "dilos", description="how capacity moves between classes"
    )
    cycle: int = Field(2, ge=1, le=1000, description="periods between two redistributions")
    warm_up: Annotated[str, AfterValidator(_valid_wait)] = Field(
        "15s",
        description="`spillway run`: before the first tuple counts the queries run for so long at"
        " most, over made-up rows of their streams' columns that reach no sink; 0s: they do not",
    )

    @property
    def warm_up_s(self) -> float:
        return 0.0 if self.warm_up == NONE else parse_duration_s(self.warm_up)


class SparkSettings(Part):
    """The Spark application. Settings given here win over the session profile."""

    master: Master = Field("local[*,4]", description="all cores of this machine by default")
    config: dict[str, Scalar] = Field({})


class Cluster(Part):
    """Many nodes for one flow, as in docs/cluster.md."""

    control: dict[str, Scalar] = Field(
        {"type": "folder"},
        description="the control log: {type: folder, path: ...}, or {type: kafka, brokers: ...,"
        " topic: ...} with any setting of librdkafka",
    )
    folder: str | None = Field(
        None, description="checkpoints and ledgers, where every node can reach them"
    )
    launcher: Literal["process", "standalone", "command", "none"] = Field(
        "process", description="how a node is started; none: by somebody else"
    )
    command: str | None = Field(
        None, description="launcher command: a line with {node} and {file} in it"
    )
    master: str | None = Field(None, description="Spark master of a node; local by default")
    cores: int = Field(1, ge=1, le=1024, description="task slots of a node")
    fewest: int = Field(1, ge=1, le=10_000, description="nodes that always run")
    most: int = Field(4, ge=1, le=10_000, description="nodes that may run at once")
    lease: Duration = Field("10s", description="how long a silent node keeps its queries")
    period: Duration = Field("5s", description="from one decision of the coordinator to the next")
    upper: float = Field(0.9, gt=0.0, description="load above which a node is relieved")
    target: float = Field(0.75, gt=0.0, description="load down to which it is relieved")
    lower: float = Field(0.5, gt=0.0, description="load below which it may be released")
    patience: int = Field(3, ge=1, description="periods of overload before anything moves")
    idle: int = Field(10, ge=1, description="periods below `lower` before a node is released")
    cooldown: Duration = Field("2m", description="a query that moved, a node that started stays")

    @model_validator(mode="after")
    def _adds_up(self) -> "Cluster":
        if self.most < self.fewest:
            raise ValueError(f"most is {self.most}: it must be at least fewest, {self.fewest}")
        if not self.lower < self.target < self.upper:
            raise ValueError("lower, target and upper must ascend")
        if (self.launcher == "command") != (self.command is not None):
            raise ValueError("launcher command and a command go together")
        if self.launcher == "standalone" and not (self.master or "").startswith("spark://"):
            raise ValueError("launcher standalone needs a master, spark://host:port")
        return self


class Flow(Part):
    """A whole flow file."""

    streams: dict[Name, Stream] = Field(min_length=1, max_length=MOST_NAMES)
    classes: dict[Name, ServiceClass] = Field(min_length=1, max_length=MOST_NAMES)
    queries: dict[Name, Query] = Field(min_length=1, max_length=MOST_NAMES)
    control: Control = Control()
    spark: SparkSettings = SparkSettings()
    cluster: Cluster | None = None
