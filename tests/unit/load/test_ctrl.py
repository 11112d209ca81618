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


def test_what_leaves_is_measured_or_modelled(measure) -> None:  # type: ignore[no-untyped-def]
    """Half of the capacity is taken by somebody else: 97 of 194 tuples completed. Only what is
    measured knows, and admits that much less."""
    queue = {"queued_tuples": 100, "offered_tuples": 1_000, "completed_tuples": 97}
    admitted = {}
    for outflow in ("measured", "modelled"):
        decision = Ctrl(headroom=0.97, outflow=outflow).decide(measure(**queue))  # type: ignore[arg-type]
        assert isinstance(decision.action, KeepFraction)
        admitted[outflow] = decision.action.fraction * 1_000
    assert admitted["modelled"] - admitted["measured"] == pytest.approx(194 - 97, abs=1.0)


def test_one_wild_estimate_is_not_remembered_for_long(measure) -> None:  # type: ignore[no-untyped-def]
    """On a cold JVM c can be wrong by a factor of hundred for a period."""
    wild, calm = Ctrl(), Ctrl()
    steady = {"queued_tuples": 200, "offered_tuples": 400, "completed_tuples": 194}
    wild.decide(measure(queued_tuples=10_000_000, cost_s=0.5, offered_tuples=400))
    calm.decide(measure(**steady))
    for _ in range(12):
        after, usual = wild.decide(measure(**steady)), calm.decide(measure(**steady))
    assert isinstance(after.action, KeepFraction)
    assert isinstance(usual.action, KeepFraction)
    assert after.action.fraction == pytest.approx(usual.action.fraction, rel=0.15)


def test_a_headroom_that_the_user_gives_is_a_share_of_what_is_told(measure) -> None:  # type: ignore[no-untyped-def]
    queue = {"queued_tuples": 100, "offered_tuples": 10_000}
    half = Ctrl(headroom=0.5).decide(measure(headroom=0.8, **queue))
    assert half.headroom == pytest.approx(0.4)
    assert Ctrl(headroom=0.5).decide(measure(**queue)).headroom == pytest.approx(0.5)
    assert Ctrl().decide(measure(headroom=0.8, **queue)).headroom == pytest.approx(0.8)
