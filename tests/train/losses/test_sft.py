"""Likelihood of chosen tokens, and the anchor beside it."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train.losses import anchor_loss, sft_loss  # noqa: E402
from tests.train.losses.batches import random_batch, slope  # noqa: E402


def test_supervised_loss_is_cross_entropy():
    rng = torch.Generator().manual_seed(0)
    logits, ids = torch.randn(2, 5, 7, generator=rng), torch.randint(7, (2, 5), generator=rng)
    mask = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 0, 0]])
    logp = logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.where(mask != 0, -100).flatten())
    torch.testing.assert_close(sft_loss(logp, mask), expected)
    torch.testing.assert_close(sft_loss(logp, mask, 30), expected * 5 / 30)


@pytest.mark.parametrize("loss", [sft_loss, lambda logp, mask: anchor_loss(logp, torch.full_like(logp, -1.5), mask)])
def test_nothing_outside_the_mask_matters(loss):
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
