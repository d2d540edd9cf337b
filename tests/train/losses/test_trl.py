"""The losses are those of TRL on the same tensors, by TRL's own code."""

from collections import defaultdict
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from trl import GRPOTrainer  # noqa: E402
from trl.experimental.gkd import GKDTrainer  # noqa: E402

from gametape.train.losses import anchor_loss, divergence, normaliser, rl_loss, ttf_loss  # noqa: E402
from tests.train.losses.batches import random_batch, slope  # noqa: E402

LENGTH = 11
"""The fixed length that Dr.GRPO divides by: not that of the batch."""


def trl_loss(batch, loss_type, level="token", clip_low=0.2, clip_high=0.28, kl=0.0, start=None, weights=None):
    """What GRPOTrainer makes of the batch, with its network replaced by the log-probs that are there."""
    shape = batch.logp.shape
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (batch.logp, torch.zeros(shape), None),
        accelerator=SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x),
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False),
        model=SimpleNamespace(training=False),
        _metrics={"eval": defaultdict(list)},
        _entropy_bonus_enabled=False,
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        loss_type=loss_type,
        epsilon_low=clip_low,
        epsilon_high=clip_high,
        beta=kl,
        max_completion_length=LENGTH,
        use_vllm=weights is not None,
        vllm_importance_sampling_correction=True,
    )
    ids = torch.zeros(shape, dtype=torch.long)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": torch.ones_like(ids[:, :1]),
        "completion_ids": ids,
        "completion_mask": torch.ones_like(ids),
        "tool_mask": batch.mask.long(),
        "advantages": batch.adv,
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": start,
        "importance_sampling_ratio": weights,
        "num_items_in_batch": batch.mask.sum(),
    }
    return GRPOTrainer._compute_loss(trainer, None, inputs)


def same(ours, theirs, of):
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(slope(ours, of), slope(theirs, of), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("variant", "theirs"),
    [
        ("grpo", {"loss_type": "grpo"}),
        ("dapo", {"loss_type": "dapo"}),
        ("cispo", {"loss_type": "cispo", "clip_high": 1.28}),  # TRL bounds the ratio itself, not its distance from 1
        ("gspo", {"loss_type": "grpo", "level": "sequence"}),
    ],
)
def test_each_variant_by_its_own_normaliser(variant, theirs, seed):
    batch = random_batch(seed)
    same(
        rl_loss(batch.logp, batch.old, batch.adv, batch.mask, variant, 0.2, 0.28), trl_loss(batch, **theirs), batch.logp
    )


@pytest.mark.parametrize("variant", ["loo", "dr_grpo"])
def test_the_default_is_dr_grpo_with_a_fixed_length(variant):
    batch = random_batch(3)
    denominator = normaliser(variant, len(batch.adv), LENGTH)
    ours = rl_loss(batch.logp, batch.old, batch.adv, batch.mask, variant, 0.2, 0.28, denominator)
    same(ours, trl_loss(batch, "dr_grpo"), batch.logp)


def test_narrow_bounds_for_whole_rollouts():
    batch = random_batch(4)
    bounds = {"clip_low": 0.05, "clip_high": 0.01}
    ours = rl_loss(batch.logp, batch.old, batch.adv, batch.mask, "gspo", **bounds)
    same(ours, trl_loss(batch, "grpo", level="sequence", **bounds), batch.logp)


@pytest.mark.parametrize(
    ("variant", "loss_type", "level"),
    [("grpo", "grpo", "token"), ("dapo", "dapo", "token"), ("gspo", "grpo", "sequence")],
)
def test_rollouts_of_older_weights(variant, loss_type, level):
    batch = random_batch(5)
    behaviour = batch.old + random_batch(6).adv[:, None]
    weights = (batch.old - behaviour).exp().clamp(max=2.0)
    assert (weights == 2.0).any()
    ours = rl_loss(batch.logp, batch.old, batch.adv, batch.mask, variant, behaviour_logp_BT=behaviour)
    same(ours, trl_loss(batch, loss_type, level, weights=weights), batch.logp)


def test_the_anchor_is_trls_divergence_from_its_reference():
    batch = random_batch(7)
    start = random_batch(8).old
    theirs = trl_loss(batch, "dapo", kl=1.0, start=start) - trl_loss(batch, "dapo")
    same(anchor_loss(batch.logp, start, batch.mask), theirs, batch.logp)


def logits(seed):
    return 4 * torch.randn(6, 30, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("beta", [0.0, 0.7, 1.0])
def test_feedback_is_trls_divergence_in_both_directions(beta):
    student, teacher = logits(0).requires_grad_(), logits(1)
    forward = GKDTrainer.generalized_jsd_loss(student, teacher, beta=0, reduction="none").sum(-1)
    reverse = GKDTrainer.generalized_jsd_loss(student, teacher, beta=1, reduction="none").sum(-1)
    theirs = beta * forward + (1 - beta) * reverse
    torch.testing.assert_close(divergence(student, teacher, beta), theirs, rtol=1e-12, atol=1e-12)
    capped = (theirs * (6.0 / theirs).clamp(max=1).detach()).sum()
    assert (theirs > 6.0).any()
    assert (theirs < 6.0).any()
    same(ttf_loss(student, teacher, torch.ones(6), torch.ones(6), beta, 6.0), capped, student)
