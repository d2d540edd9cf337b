"""Policy losses, advantages and the supervised loss: gradients, masks and normalisers."""

import math
import statistics

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.core.errors import BadInput  # noqa: E402
from gametape.train.losses import UnknownVariant, anchor_loss, group_advantages, normaliser, rl_loss, sft_loss  # noqa: E402  # noqa: E402  # noqa: E402
from tests.train.losses.batches import random_batch, slope  # noqa: E402

VARIANTS = ["loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo"]


@pytest.mark.parametrize("denominator", [None, 40.0])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "cispo"])
def test_gradients_are_finite_differences(variant, denominator):
    batch = random_batch(1)

    def loss(logp):
        return rl_loss(logp, batch.old, batch.adv, batch.mask, variant, 0.2, 0.28, denominator)

    assert torch.autograd.gradcheck(loss, batch.logp)


def test_cispo_weighs_a_plain_policy_gradient():
    """Its weights are constants, which finite differences do not know: so the derivative of the rest."""
    batch = random_batch(2)
    weight = (batch.logp - batch.old).exp().clamp(max=1.28).detach()
    expected = -weight * batch.adv[:, None] * batch.mask / 10
    gradient = slope(rl_loss(batch.logp, batch.old, batch.adv, batch.mask, "cispo", denominator=10), batch.logp)
    torch.testing.assert_close(gradient, expected)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(VARIANTS),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(0, 10**6),
    st.sampled_from([None, 12.0]),
    st.booleans(),
)
def test_nothing_outside_the_mask_matters(variant, rollouts, tokens, seed, denominator, stale):
    """Not even infinities; and a rollout without an advantage gets exactly no gradient, however far it has moved."""
    batch = random_batch(seed, rollouts, tokens, torch.float32)
    outside = ~batch.mask
    old = batch.old.masked_fill(outside, float("nan"))
    old[0] -= 1000.0
    logp = batch.logp.detach().masked_fill(outside, -torch.inf).requires_grad_()
    adv = batch.adv.clone()
    adv[0] = 0.0
    behaviour = old - 0.5 if stale else None
    mask = batch.mask.clone()
    mask[-1] = False
    loss = rl_loss(logp, old, adv, mask, variant, denominator=denominator, behaviour_logp_BT=behaviour)
    gradient = slope(loss, logp)
    assert loss.isfinite()
    assert loss.dtype == torch.float32
    assert gradient.isfinite().all()
    assert (gradient[~mask] == 0).all()
    assert (gradient[0] == 0).all()


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(VARIANTS), st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 3))
def test_with_a_denominator_batches_add_up(variant, seed, cut, padding):
    """Split over backward passes, padded, or with its zero-advantage rollouts dropped: the same gradient."""
    batch = random_batch(seed)
    adv = batch.adv.clone()
    adv[2] = 0.0

    def loss(rows, pad=0):
        wide = [torch.nn.functional.pad(part[rows], (0, pad)) for part in (batch.logp, batch.old, batch.mask)]
        return rl_loss(wide[0], wide[1], adv[rows], wide[2], variant, denominator=normaliser(variant, 5, 7))

    whole = slope(loss([0, 1, 2, 3, 4]), batch.logp)
    parts = loss([0, 1, 2, 3, 4][:cut], padding) + loss([0, 1, 2, 3, 4][cut:])
    torch.testing.assert_close(slope(parts, batch.logp), whole)
    torch.testing.assert_close(slope(loss([0, 1, 3, 4]), batch.logp), whole)


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_policy_all_are_a_plain_policy_gradient(variant):
    """Nothing is clipped at a ratio of 1: a token's slope is its advantage over the normaliser."""
    batch = random_batch(3)
    gradient = slope(rl_loss(batch.logp, batch.logp, batch.adv, batch.mask, variant, denominator=20), batch.logp)
    expected = -batch.adv[:, None] * batch.mask / 20
    if variant in {"grpo", "gspo"}:
        expected = expected / batch.mask.sum(-1, keepdim=True)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_advantage_for_each_token(variant):
    batch = random_batch(4)
    adv = batch.adv[:, None].repeat(1, 7)
    one = rl_loss(batch.logp, batch.old, batch.adv, batch.mask, variant)
    each = rl_loss(batch.logp, batch.old, adv, batch.mask, variant)
    torch.testing.assert_close(slope(each, batch.logp), slope(one, batch.logp))
    adv[:, 3:] = 0.0
    gradient = slope(rl_loss(batch.logp, batch.logp, adv, batch.mask, variant), batch.logp)
    assert (gradient[:, 3:] == 0).all()
    assert (gradient[:, 0] != 0).all()


def test_clipping_drops_a_rare_token_and_cispo_keeps_it():
    logp, old = torch.tensor([[-1.0]], requires_grad=True), torch.tensor([[-3.0]])
    clipped = rl_loss(logp, old, [1.0], [[1]], "dapo")
    assert clipped.item() == pytest.approx(-1.28)
    assert slope(clipped, logp).item() == 0
    assert rl_loss(old, logp, [-1.0], [[1]], "dapo").item() == pytest.approx(0.8)
    assert slope(rl_loss(logp, old, [1.0], [[1]], "cispo"), logp).item() == pytest.approx(-1.28)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("advantage", [1.5, -1.5])
@pytest.mark.parametrize("ratio", [0.5, 0.79, 0.81, 1.0, 1.27, 1.29, 3.0])
@pytest.mark.parametrize("weight", [0.5, 1.0, 5.0])
def test_either_bound_acts_on_its_side_alone(variant, advantage, ratio, weight):
    """The upper bound ends a rise, the lower one a fall; a token that went the wrong way is pulled back from any
    distance. `cispo` holds the weight from above and drops nothing."""
    old = torch.tensor([[-2.0]], dtype=torch.float64)
    logp = (old + math.log(ratio)).requires_grad_()
    told = {"behaviour_logp_BT": old - math.log(weight), "importance_cap": 2.0}
    (gradient,) = slope(rl_loss(logp, old, [advantage], [[1]], variant, 0.2, 0.28, 1.0, **told), logp).flatten()
    dropped = (ratio > 1.28) if advantage > 0 else (ratio < 0.8)
    factor = min(ratio, 1.28) if variant == "cispo" else 0.0 if dropped else ratio
    assert gradient.item() == pytest.approx(-factor * advantage * min(weight, 2.0), abs=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_tokens_of_older_weights_are_weighed_one_by_one(variant):
    """By what the old policy gives them over what the sampling one did, at most the cap; in `gspo` all alike, by the
    geometric mean."""
    logp = torch.full((1, 3), -1.0, requires_grad=True)
    behaviour = logp.detach() - torch.tensor([0.25, 1.0, 4.0]).log()
    stale = rl_loss(logp, logp, [1.0], [[1, 1, 1]], variant, denominator=1, behaviour_logp_BT=behaviour)
    fresh = rl_loss(logp, logp, [1.0], [[1, 1, 1]], variant, denominator=1)
    weights = torch.tensor([1.0, 1.0, 1.0] if variant == "gspo" else [0.25, 1.0, 2.0])
    torch.testing.assert_close(slope(stale, logp), slope(fresh, logp) * weights)


def test_half_precision_is_summed_in_full():
    logp = torch.full((1, 4096), -0.001, dtype=torch.bfloat16, requires_grad=True)
    loss = rl_loss(logp, logp, [1.0], torch.ones(1, 4096), denominator=1)
    assert loss.dtype == torch.float32
    assert loss.item() == -4096


def test_lists_will_do():
    loss = rl_loss([[-1.0, -2.0]], [[-1.0, -2.0]], [3], [[True, False]], "Dr.GRPO")
    assert loss.item() == -1.5


@pytest.mark.parametrize("call", [lambda: rl_loss([[0.0]], [[0.0]], [1.0], [[1]], "ppo"), lambda: normaliser("", 1, 1)])
def test_an_unknown_variant_is_told_the_known_ones(call):
    with pytest.raises(BadInput, match="there are loo, dr_grpo, grpo, dapo, cispo, gspo"):
        call()
    with pytest.raises(ValueError, match="no variant"):
        call()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mask_BT": [[1]]}, "the mask is"),
        ({"old_logp_BT": [[0.0]]}, "differ in shape"),
        ({"behaviour_logp_BT": [[0.0]]}, "differ in shape"),
        ({"logp_BT": [0.0, 0.0]}, "rollouts x tokens"),
        ({"denominator": 0}, "above 0"),
        ({"clip_low": -0.1}, "clip bounds"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    right = {"logp_BT": [[0.0, 0.0]], "old_logp_BT": [[0.0, 0.0]], "adv_B": [1.0], "mask_BT": [[1, 1]]}
    with pytest.raises(ValueError, match=message):
        rl_loss(**right | wrong)


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


def test_supervised_loss_is_cross_entropy():
    rng = torch.Generator().manual_seed(0)
    logits, ids = torch.randn(2, 5, 7, generator=rng), torch.randint(7, (2, 5), generator=rng)
    mask = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 0, 0]])
    logp = logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.where(mask != 0, -100).flatten())
    torch.testing.assert_close(sft_loss(logp, mask), expected)
    torch.testing.assert_close(sft_loss(logp, mask, 30), expected * 5 / 30)


@pytest.mark.parametrize("loss", [sft_loss, lambda logp, mask: anchor_loss(logp, torch.full_like(logp, -1.5), mask)])
def test_nothing_outside_the_mask_matters_to_supervised_losses(loss):
    batch = random_batch(1)
    logp = batch.logp.detach().masked_fill(~batch.mask, -torch.inf).requires_grad_()
    gradient = slope(loss(logp, batch.mask), logp)
    assert gradient.isfinite().all()
    assert (gradient[~batch.mask] == 0).all()
    assert (gradient[batch.mask] != 0).all()
    assert loss(logp, torch.zeros_like(batch.mask)).item() == 0


def test_the_anchor_pulls_back_and_rests_at_the_start():
    start = random_batch(2).old
    moved = (start + 0.5).requires_grad_()
    mask = torch.ones_like(start)
    assert (slope(anchor_loss(moved, start, mask), moved) > 0).all()
    still = start.clone().requires_grad_()
    assert (slope(anchor_loss(still, start, mask), still) == 0).all()
    assert torch.autograd.gradcheck(lambda given: anchor_loss(given, start, mask, 7), moved)
