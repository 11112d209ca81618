"""The section of a flow file that spreads it over nodes."""

from typing import Literal

from pydantic import Field, model_validator

from spillway.flow.values import Duration, Part, Scalar

TABLES = ("scenarios", "paper", "none")


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
    handover: Duration = Field(
        "2m",
        description="how long the successor of a query that moves while it runs may take to catch"
        " up, before the query is stopped here and started there instead",
    )
    upper: float = Field(0.9, gt=0.0, description="load above which a node is relieved")
    target: float = Field(0.75, gt=0.0, description="load down to which it is relieved")
    lower: float = Field(0.5, gt=0.0, description="load below which it may be released")
    patience: int = Field(3, ge=1, description="periods of overload before anything moves")
    idle: int = Field(10, ge=1, description="periods below `lower` before a node is released")
    tables: Literal["scenarios", "paper", "none"] = Field(
        "scenarios",
        description="where a flow spans nodes: by which tables nodes shed for those behind them",
    )
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
