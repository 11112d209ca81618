"""What is shed in front of a shared segment is lost for others too: one's own goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.classes.parts import spare_shared


@given(
    keep=st.floats(0.0, 1.0),
    own=st.floats(0.01, 100.0),
    shared=st.floats(0.01, 100.0),
    least=st.sampled_from([0.0, 0.01, 0.2]),
)
def test_as_much_is_kept_as_if_all_were_shed_alike_and_of_the_shared_part_the_most(
    keep: float, own: float, shared: float, least: float
) -> None:
    of_own, of_shared = spare_shared(keep, own, shared, least)
    assert of_own * own + of_shared * shared == pytest.approx(keep * (own + shared))
    assert -1e-9 <= of_own <= 1.0
    assert 0.0 <= of_shared <= 1.0
    if keep > least:
        assert of_own <= of_shared + 1e-9
        assert of_shared == pytest.approx(1.0) or of_own == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize(("own", "shared"), [(0.0, 5.0), (5.0, 0.0), (0.0, 0.0)])
def test_where_there_is_one_part_only_it_is_all_alike(own: float, shared: float) -> None:
    assert spare_shared(0.4, own, shared) == (0.4, 0.4)


def test_below_the_least_both_are_shed_alike() -> None:
    assert spare_shared(0.005, 1.0, 1.0) == (0.005, 0.005)
