"""Bounds on gradients."""

import math

import pytest

torch = pytest.importorskip("torch")

from gametape.train.optim import clip_grad_norm  # noqa: E402


def test_gradients_are_scaled_together():
    gradients = [torch.tensor([3.0, 0.0]), None, torch.tensor([[4.0]])]
    assert clip_grad_norm(gradients).value == 5.0
    assert not clip_grad_norm(gradients, 5.0).scaled
    norm = clip_grad_norm(gradients, 1.0)
    assert (norm.value, norm.scaled, norm.finite) == (5.0, True, True)
    torch.testing.assert_close(gradients[0], torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(gradients[2], torch.tensor([[0.8]]))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_told_and_left(bad):
    gradients = [torch.tensor([3.0, bad]), torch.tensor([4.0])]
    norm = clip_grad_norm(gradients, 1.0)
    assert not norm.finite
    assert not norm.scaled
    assert gradients[1].item() == 4.0


def test_no_gradient_at_all():
    assert clip_grad_norm([None], 1.0).value == 0
    with pytest.raises(ValueError, match="above 0"):
        clip_grad_norm([], 0.0)
