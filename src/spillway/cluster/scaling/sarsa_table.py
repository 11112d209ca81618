"""The lookup table of one host: utilisation x action -> expected reward (FUGU, section IV-C)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

STEP = 0.05
STATES = 21  # 0, 0.05 .. 1
TIE = 1e-9  # capped entries stay this much below the best: equals would go to no action


class Choice(IntEnum):
    """In the order in which a growing utilisation should meet them."""

    SCALE_IN = 0
    NO_ACTION = 1
    SCALE_OUT = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Learning:
    """alpha(s) = imp * dur / (dur + visits(s)); beta weighs the future reward.

    Default imp 0.2, dur 80, beta 0.1 (the paper's). The paper punishes a decision that could not
    be carried out with an unnamed negative reward: we use -1. It calls such decisions wrong, and
    its example is a release. A scale out that finds the cluster at its limit is not wrong: by
    default it is not punished, because a host that is learns to sit out every later overload.

    `future`: the paper's formula leaves open whose value Q(s') is. Sarsa(0) takes that of the
    action chosen there ("chosen"); the paper's worked example that of no action ("no action").
    """

    imp: float = 0.2
    dur: float = 80.0
    beta: float = 0.1
    penalty: float = -1.0
    punish_scale_out: bool = False
    future: Literal["chosen", "no action"] = "chosen"


def state_of(utilisation: float) -> int:
    """The nearest row of the table."""
    return min(STATES - 1, max(0, round(utilisation / STEP)))


def utilisation_reward(before: float, after: float, target: float) -> float:
    """1 + decrease of the relative utilisation error |target - u| / target."""
    return 1.0 + (abs(target - before) - abs(target - after)) / target


class SarsaTable:
    """Q(s, a), updated by Sarsa(0):

        Q(s, a) <- (1 - alpha) Q(s, a) + alpha (r + beta Q(s', a'))

    where a' is the action chosen in s', or no action (`Learning.future`). The soft monotonicity
    constraint is enforced after each update: with scale in < no action < scale out, a higher
    utilisation never prefers a lower action. That carries what one state has learnt to states that
    were not visited yet.
    """

    def __init__(self, values: npt.NDArray[np.float64], learning: Learning) -> None:
        """A table may hold several scales of utilisation, one after the other."""
        self.values = values.copy()
        self._learning = learning
        self._visits = np.zeros(values.shape[0], dtype=np.int64)

    def best(self, state: int) -> Choice:
        """The action of highest reward; of equals, no action first."""
        row = self.values[state]
        choice = int(np.argmax(row))
        return Choice.NO_ACTION if row[1] >= row[choice] else Choice(choice)

    def value(self, state: int, choice: Choice) -> float:
        return float(self.values[state, choice])

    def future(self, state: int) -> float:
        """What is expected from here on, by either reading."""
        chosen = self._learning.future == "chosen"
        return self.value(state, self.best(state) if chosen else Choice.NO_ACTION)

    def learn(self, state: int, choice: Choice, reward: float, next_value: float) -> None:
        learning = self._learning
        alpha = learning.imp * learning.dur / (learning.dur + self._visits[state])
        self._visits[state] += 1
        old = self.values[state, choice]
        self.values[state, choice] = (1.0 - alpha) * old + alpha * (
            reward + learning.beta * next_value
        )
        self._enforce_monotonicity(state)

    def _enforce_monotonicity(self, state: int) -> None:
        """Cap, never raise: higher states may not prefer a lower action than this state's best,
        lower states may not prefer a higher one."""
        best = self.best(state)
        start = state - state % STATES
        above, below = self.values[state + 1 : start + STATES], self.values[start:state]
        for other in Choice:
            if other < best:
                above[:, other] = np.minimum(above[:, other], above[:, best] - TIE)
            elif other > best:
                below[:, other] = np.minimum(below[:, other], below[:, best] - TIE)


def initial_values(lower: float, upper: float) -> npt.NDArray[np.float64]:
    """Scale in is best below the lower threshold, scale out from the upper one on, no action
    between. Level and slopes are like the paper's table I(a) (all near 0.8; scale out rises by
    0.5, no action falls by 1.5 per unit of utilisation); the paper gives no formula for its rows.
    """
    u = np.arange(STATES) * STEP
    down, up = lower - STEP / 2.0, upper - STEP / 2.0  # crossings fall between two rows
    no_action = 0.825 + np.minimum(1.5 * np.minimum(up - u, u - down), 0.15)
    # The opposite of what a threshold asks for is the last choice: a penalty must not lead to it.
    least = no_action - 0.05
    towards_in, towards_out = 0.825 + 0.5 * (down - u), 0.825 + 0.5 * (u - up)
    scale_in = np.where(u < down, towards_in, np.minimum(least, towards_in))
    scale_out = np.where(u > up, towards_out, np.minimum(least, towards_out))
    return np.column_stack((scale_in, no_action, scale_out))
