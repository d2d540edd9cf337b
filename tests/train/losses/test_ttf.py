"""Targeted feedback: on its span alone, and strongest where the hint matters."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train.losses import divergence, rl_loss, ttf_loss  # noqa: E402
from tests.train.losses.batches import slope  # noqa: E402


def logits(seed, places=4, vocabulary=9, scale=3.0):
    rng = torch.Generator().manual_seed(seed)
    return scale * torch.randn(places, vocabulary, generator=rng, dtype=torch.float64)


def test_the_sum_is_weighed_and_capped():
    student, teacher = logits(0), logits(1)
    apart = divergence(student, teacher, 0.4)
    weights, ratio = torch.tensor([1.0, 0.5, 0.0, 0.25]), torch.tensor([1.0, 2.0, 1.0, 0.1])
    kappa = float(apart.median())
    expected = sum(w * r * min(d, kappa) for w, r, d in zip(weights, ratio, apart, strict=True))
    assert ttf_loss(student, teacher, weights, ratio, 0.4, kappa).item() == pytest.approx(float(expected))


def test_the_cap_scales_a_gradient_and_never_takes_it():
    """A student that is sure of the wrong token: many nats away, and the one to learn from."""
    student = torch.tensor([[12.0, 0.0, 0.0]], requires_grad=True)
    teacher = torch.tensor([[0.0, 12.0, 0.0]])
    apart = divergence(student, teacher)
    assert apart.item() > 11
    gradient = slope(ttf_loss(student, teacher, [1.0], [1.0], 0.7, 0.5), student)
    torch.testing.assert_close(gradient, slope(apart.sum(), student) * (0.5 / apart.item()))
    assert gradient[0, 1].item() < -0.02


def test_gradients_below_the_cap_are_finite_differences():
    student, teacher = logits(2, scale=0.5).requires_grad_(), logits(3, scale=0.5)
    weights, ratio = torch.rand(4).double(), torch.rand(4).double()
    assert torch.autograd.gradcheck(lambda given: ttf_loss(given, teacher, weights, ratio, 0.7, 50.0), student)


def test_only_the_student_learns():
    student, teacher = logits(4).requires_grad_(), logits(5).requires_grad_()
    weights, ratio = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    ttf_loss(student, teacher, weights, ratio).backward()
    assert student.grad.abs().sum() > 0
    assert [teacher.grad, weights.grad, ratio.grad] == [None, None, None]


def test_a_failed_group_still_learns_from_its_span_and_nowhere_else():
    logits_TV = logits(6, places=10).requires_grad_()
    logp_BT = logits_TV.log_softmax(-1)[None, :, 0]
    rl = rl_loss(logp_BT, logp_BT, [0.0], torch.ones(1, 10))
    ttf = ttf_loss(logits_TV[4:7], logits(7, places=3), [1.0, 0.5, 0.5], [1.0, 1.0, 1.0])
    gradient = slope(rl + 0.1 * ttf, logits_TV)
    outside = [*range(4), *range(7, 10)]
    assert (gradient[outside] == 0).all()
    assert (gradient[4:7] != 0).any(-1).all()


def test_without_a_hint_the_current_policy_teaches_nothing():
    student = logits(8).float().requires_grad_()
    loss = ttf_loss(student, student, [1.0] * 4, [1.0] * 4)
    assert loss.item() == 0
    assert (slope(loss, student) == 0).all()


def test_an_empty_span_is_no_loss():
    assert ttf_loss(torch.zeros(0, 5), torch.zeros(0, 5), torch.zeros(0), torch.zeros(0)).item() == 0


@pytest.mark.parametrize("kappa", [0.0, -1.0])
def test_a_cap_is_above_zero(kappa):
    with pytest.raises(ValueError, match="kappa"):
        ttf_loss(logits(0), logits(1), [1.0] * 4, [1.0] * 4, 0.7, kappa)
