"""The section of a flow file that lets one application grow and shrink."""

import re
from typing import Annotated

from pydantic import Field, model_validator

from spillway.cluster.prices import Prices
from spillway.cluster.scaling.catalog import POLICIES
from spillway.cluster.scaling.policy import ScalingSettings
from spillway.errors import SpillwayError
from spillway.flow.values import Duration, OneOf, Part
from spillway.model import parse_duration_s

DYNAMIC = "spark.dynamicAllocation.enabled"
_LOCAL = re.compile(r"local(\[.*\])?")


def require_scalable(master: str | None, dynamic: str) -> None:
    """Raise where executors cannot come and go, or where Spark itself decides how many there are.

    `dynamic`: what the session says of Spark's own dynamic allocation.
    """
    if _LOCAL.fullmatch(master or "local"):
        raise SpillwayError(
            f"scale needs a cluster: the master is '{master}', which has no executors; give"
            " spark://host:port, yarn or k8s://url, or leave scale out"
        )
    if dynamic.lower() == "true":
        raise SpillwayError(
            f"scale and {DYNAMIC} both decide how many executors there are: set it to false,"
            " or leave scale out"
        )


class Scale(Part):
    """More or fewer executors of this application, on a cluster master, as in docs/executors.md."""

    min: int = Field(1, ge=1, le=10_000, description="executors that always stay")
    max: int = Field(ge=1, le=10_000, description="executors at most")
    policy: Annotated[str, OneOf(POLICIES)] = Field(
        "true-rate", description="how many there are to be, as in docs/scaling.md"
    )
    lower: float = Field(0.5, ge=0.0, lt=1.0, description="load below which executors may go")
    target: float = Field(0.9, gt=0.0, le=1.0, description="load that executors are filled to")
    upper: float = Field(0.95, gt=0.0, le=1.0, description="load above which there are too few")
    period: Duration = Field("5s", description="from one look at the load to the next")
    consecutive: int = Field(3, ge=1, le=1000, description="looks that must agree")
    grace: Duration = Field("30s", description="so long nothing is decided after a change")
    patience: Duration = Field("2m", description="how long a request may stay unfulfilled")
    retry: Duration = Field("10m", description="before more is asked for than the cluster had")
    shed_price: float = Field(
        0.0, ge=0.0, description="of a million shed tuples, in the currency of executor_price"
    )
    executor_price: float = Field(
        0.0, ge=0.0, description="of an executor for an hour; 0: it is started without counting"
    )

    @model_validator(mode="after")
    def _adds_up(self) -> "Scale":
        if self.max < self.min:
            raise ValueError(f"max is {self.max}: it must be at least min, {self.min}")
        if not self.lower < self.target <= self.upper:
            raise ValueError(
                f"lower, target and upper are {self.lower:g}, {self.target:g} and {self.upper:g}:"
                " they must ascend"
            )
        if self.executor_price > 0.0 and self.shed_price == 0.0:
            raise ValueError(
                "executor_price needs shed_price: with tuples that cost nothing no executor would"
                " ever be started"
            )
        return self

    @property
    def settings(self) -> ScalingSettings:
        return ScalingSettings(
            lower=self.lower,
            target=self.target,
            upper=self.upper,
            consecutive=self.consecutive,
            grace_s=parse_duration_s(self.grace),
            min_hosts=self.min,
            max_hosts=self.max,
        )

    @property
    def prices(self) -> Prices | None:
        """None: an executor costs nothing."""
        if self.executor_price == 0.0:
            return None
        return Prices(per_million_tuples=self.shed_price, per_node_hour=self.executor_price)
