"""What the cluster's brain can ask for. Every action says why, and what it expects to come of it.

The expectation is not decoration: it is recorded with the action and compared with what is
measured later (see `expectations.py` in scaling), and what did not help is not repeated.
"""

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["utilisation", "hosts", "delay_s", "shed_tuples_per_s", "quota"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedEffect:
    """`quantity` of `subject` (a host, a query, a class, or the cluster) moves from `before`
    to `after`, and that can be seen `within_s` after the action has finished."""

    quantity: Quantity
    subject: str
    before: float
    after: float
    within_s: float

    def achieved(self, measured: float) -> float:
        """Share of the expected change that happened: 1 as expected, 0 none, below 0 adverse."""
        change = self.after - self.before
        return 1.0 if change == 0.0 else (measured - self.before) / change


@dataclass(frozen=True, kw_only=True, slots=True)
class StartNode:
    node: str  # the name that the new node will have
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class StopNode:
    """Only for a node that hosts nothing any more, or whose moves are in the same plan."""

    node: str
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveOperator:
    operator: str
    source: str
    destination: str
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveQuery:
    query: str
    source: str
    destination: str
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class Decouple:
    """Give `query` its own copy of an operator that it shares, so that it can leave alone."""

    operator: str
    query: str
    node: str
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class SetQuota:
    """The share of a node that a class owns from now on."""

    node: str
    class_name: str
    quota: float
    reason: str
    expected: ExpectedEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class Shed:
    """Keep only this fraction of what is offered to the operators of a node."""

    node: str
    keep_fraction: float
    reason: str
    expected: ExpectedEffect


ClusterAction = StartNode | StopNode | MoveOperator | MoveQuery | Decouple | SetQuota | Shed
