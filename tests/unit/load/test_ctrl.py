"""CTRL: the design from poles, and the law."""

import pytest

from spillway.errors import SpillwayError
from spillway.load.ctrl import Controller, Ctrl, design
from spillway.model import KeepFraction


def step_response(controller: Controller, periods: int = 60) -> list[float]:
    """Delay over target of the model plant (an integrator) after a step of the target."""
    delay, error, growth, found = 0.0, 0.0, 0.0, []
    for _ in range(periods):
        previous, error = error, 1.0 - delay
        growth = controller.b0 * error + controller.b1 * previous - controller.a * growth
        delay += growth
        found.append(delay)
    return found


def test_the_papers_parameters_come_out_of_its_poles() -> None:
    assert design((0.7, 0.7), -0.8) == pytest.approx((-0.8, 0.4, -0.31))


@pytest.mark.parametrize("a", [-0.95, -0.8, -0.3, 0.0, 0.5])
@pytest.mark.parametrize("poles", [(0.7, 0.7), (0.3, 0.6), (0.5 + 0.3j, 0.5 - 0.3j)])
def test_every_member_of_the_family_has_the_wanted_poles_and_gain_one(
    poles: tuple[complex, complex], a: float
) -> None:
    controller = design(poles, a)
    p1, p0 = controller.closed_loop()
    assert (p1, p0) == pytest.approx((-sum(poles).real, (poles[0] * poles[1]).real))
    gain_at_one = (controller.b0 + controller.b1) / (1.0 + p1 + p0)
    assert gain_at_one == pytest.approx(1.0)


def test_members_of_the_family_differ_in_their_zero_and_so_in_their_transient() -> None:
    """The paper says that they perform alike. They settle alike; on the way they do not."""
    zeros = {a: design(a=a).zero for a in (-0.95, -0.8, 0.2)}
    assert zeros == pytest.approx({-0.95: 0.836, -0.8: 0.775, 0.2: 1.15}, abs=1e-3)
    responses = {a: step_response(design(a=a)) for a in zeros}
    assert all(found[-1] == pytest.approx(1.0, abs=1e-3) for found in responses.values())
    assert max(responses[-0.95]) > 1.13
    assert max(responses[-0.8]) < 1.02
    assert min(responses[0.2]) < -0.7  # a zero outside the unit circle: starts the wrong way


@pytest.mark.parametrize(
    ("poles", "a", "named"),
    [
        ((1.0, 0.7), -0.8, "unit circle"),
        ((0.5 + 0.1j, 0.7), -0.8, "conjugate"),
        ((0.7, 0.7), 1.0, "between -1 and 1"),
    ],
)
def test_a_design_that_cannot_work_is_refused(
    poles: tuple[complex, complex], a: float, named: str
) -> None:
    with pytest.raises(SpillwayError, match=named):
        design(poles, a)


def test_the_share_follows_equations_10_to_13_by_hand(measure) -> None:  # type: ignore[no-untyped-def]
    law = Ctrl(headroom=1.0)
    action = law.decide(measure(cost_s=0.01, queued_tuples=99, offered_tuples=400)).action
    # y = 100 x 0.01 = 1 s, e = 1 s, u = 100 x 0.4 = 40/s, v = 40 + 100
    assert action == KeepFraction(fraction=pytest.approx(140 / 400))
    action = law.decide(measure(cost_s=0.01, queued_tuples=199, offered_tuples=400)).action
    # e = 0, u = 100 x (-0.31 x 1) + 0.8 x 40 = 1/s
    assert action == KeepFraction(fraction=pytest.approx(101 / 400))


def test_an_unknown_cost_admits_everything(measure) -> None:  # type: ignore[no-untyped-def]
    assert Ctrl().decide(measure(cost_s=0.0, queued_tuples=10**6)).action.fraction == 1.0
