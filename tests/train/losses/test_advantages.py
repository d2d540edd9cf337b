"""Advantages against the textbook's own words."""

import statistics

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.train.losses import UnknownVariant, group_advantages  # noqa: E402

REWARDS = st.lists(st.floats(-10, 10, width=32), min_size=2, max_size=12)


@settings(deadline=None)
@given(REWARDS)
def test_each_variant_by_its_definition(rewards):
    given_ = torch.tensor(rewards, dtype=torch.float64)
    mean, spread = statistics.fmean(rewards), statistics.stdev(rewards)
    others = [statistics.fmean(rewards[:at] + rewards[at + 1 :]) for at in range(len(rewards))]
    assert group_advantages(given_).tolist() == pytest.approx(
        [reward - other for reward, other in zip(rewards, others, strict=True)], abs=1e-9
    )
    centred = [reward - mean for reward in rewards]
    assert group_advantages(given_, "dr_grpo").tolist() == pytest.approx(centred, abs=1e-9)
    for variant in ("grpo", "dapo", "cispo", "gspo"):
        scaled = [value / (spread + 1e-4) for value in centred]
        assert group_advantages(given_, variant).tolist() == pytest.approx(scaled, abs=1e-9)


@settings(deadline=None)
@given(st.floats(-1e3, 1e3, width=32), st.integers(1, 9), st.sampled_from(["loo", "dr_grpo", "grpo"]))
def test_equal_rewards_are_exactly_nothing(reward, size, variant):
    assert group_advantages([reward] * size, variant).tolist() == [0.0] * size


def test_groups_may_be_stacked():
    stacked = group_advantages([[1, 0, 0, 0], [0, 0, 1, 1]], "leave-one-out")
    assert stacked.tolist() == [group_advantages([1, 0, 0, 0]).tolist(), group_advantages([0, 0, 1, 1]).tolist()]
    assert stacked[0].tolist() == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])


def test_an_unknown_variant():
    with pytest.raises(UnknownVariant, match="'mean'"):
        group_advantages([0, 1], "mean")
