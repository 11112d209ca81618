"""Values of a flow file, each with what is allowed."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, core_schema

from spillway.errors import SpillwayError
from spillway.gate.shedders.expressions import columns_of
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


def _valid_function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("it must be module:function, for example jobs:large_orders")
    return text


def _valid_master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise ValueError(
            "it must be local, local[4], local[*,4], yarn, spark://host:port or k8s://url"
        )
    return text


_MASTER = re.compile(
    r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?|local-cluster\[[0-9, ]+\]|yarn|(spark|k8s)://\S+"
)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,200}", re.ASCII)
NONE = "0s"
MOST_NAMES = 10_000  # of streams, of classes and of queries: far beyond what one driver runs
Duration = Annotated[str, AfterValidator(_valid_duration)]
Wait = Annotated[str, AfterValidator(_valid_wait)]
FunctionName = Annotated[str, AfterValidator(_valid_function)]
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

    @field_validator("*", mode="before")
    @classmethod
    def _no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`yes` is true in YAML, and true is no number."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in (int, float):
            raise ValueError("it must be a number")
        return value
