"""The flow: streams, classes and queries. What a flow file says, checked and typed.

Every key is declared here once, with unit, default and range; options of logs, gate and sinks are
declared where they are read. The JSON Schema and the reference in docs/ are made from both.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from spillway.errors import SpillwayError
from spillway.flow.cluster import Cluster
from spillway.flow.scale import Scale
from spillway.flow.values import (
    MOST_NAMES,
    NONE,
    Duration,
    FunctionName,
    Master,
    Name,
    OneOf,
    Part,
    Scalar,
    SqlText,
    TargetText,
    Utility,
    Wait,
)
from spillway.gate.rules import Policy
from spillway.gate.shed_limit import ShedLimit
from spillway.gate.shedders import catalog
from spillway.load import laws
from spillway.logs.catalog import MODULES
from spillway.model import parse_duration_s


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
    keep: Duration | None = Field(
        None,
        description="derived streams: how long rows stay that every query has read; 1h by default",
    )

    @model_validator(mode="after")
    def _has_an_origin(self) -> "Stream":
        if (self.source is None) == (self.from_sql is None):
            raise ValueError(
                f"a stream needs either a source (one of {', '.join(MODULES)}) or from_sql"
            )
        if self.from_sql is not None and (self.options or self.columns):
            raise ValueError("a derived stream takes no options and no columns: its SQL says both")
        if self.from_sql is None and self.keep is not None:
            raise ValueError("keep is for derived streams (from_sql): a log keeps what it keeps")
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
    max_shed: str | None = Field(
        None, description="`20% per 10m`: beyond it the delay of a query gives way, not its data"
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

    @field_validator("max_shed")
    @classmethod
    def _limits(cls, value: str | None) -> str | None:
        try:
            return value and ShedLimit.parse(value).text
        except SpillwayError as error:
            raise ValueError(str(error)) from None

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
    python: FunctionName | SkipJsonSchema[Callable[..., Any]] | None = Field(
        None,
        description="`module:function` beside the flow file: a query in DataFrame code, whose"
        " arguments are named as the streams it reads",
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
    combine: bool = Field(
        True,
        description="windowed aggregates over one stream are computed in part where it is read, as"
        " in docs/combine.md; taken up by a new checkpoint",
    )
    confidence: float = Field(0.95, ge=0.5, le=0.999, description="of the bounds of estimates")
    error: str | None = Field(None, description="error budget of sums and counts, such as '5%'")
    error_tuples: int = Field(
        1000, ge=1, description="the smallest group, in offered tuples, that the budget covers"
    )
    partitions: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="partitions of its state, fixed by its checkpoint's first batch; the session's"
        " by default",
    )
    gives: Literal["delay", "error"] = Field(
        "error", description="which one gives when delay target and error budget cannot both hold"
    )

    @model_validator(mode="after")
    def _is_one_query_or_a_template(self) -> "Query":
        if sum(given is not None for given in (self.sql, self.template, self.python)) != 1:
            raise ValueError("a query needs exactly one of sql, template and python")
        if (self.template is None) != (self.instances is None):
            raise ValueError("template and instances go together")
        if self.estimate and self.sql is None:
            other = "a template" if self.python is None else "python"
            raise ValueError(f"estimate works on sql, not on {other}")
        return self

    @property
    def text(self) -> str:
        """The SQL as it was written; none of a query in Python."""
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
    warm_up: Wait = Field(
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


class Flow(Part):
    """A whole flow file."""

    streams: dict[Name, Stream] = Field({}, max_length=MOST_NAMES)
    classes: dict[Name, ServiceClass] = Field(min_length=1, max_length=MOST_NAMES)
    queries: dict[Name, Query] = Field({}, max_length=MOST_NAMES)
    control: Control = Control()
    spark: SparkSettings = SparkSettings()
    cluster: Cluster | None = None
    scale: Scale | None = None

    @model_validator(mode="after")
    def _has_something_to_run(self) -> "Flow":
        for name in ("streams", "queries"):
            if self.cluster is None and not getattr(self, name):
                raise ValueError(
                    f"{name} is missing: name at least one; a file with a section cluster may have"
                    " none, for applications that attach to it"
                )
        return self

    @model_validator(mode="after")
    def _is_one_application_or_many(self) -> "Flow":
        if self.cluster is not None and self.scale is not None:
            raise ValueError(
                "cluster and scale exclude each other: one adds nodes, the other executors of one"
                " application; leave one of them out"
            )
        return self
