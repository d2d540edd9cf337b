"""Distillation losses: both directions of KL, token weights, the cap, and the anchor."""

import math

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.train.losses import (  # noqa: E402  # noqa: E402
    disagreement_weights,
    divergence,
    prefix_ratios,
    rl_loss,
    ttf_loss,
)
from tests.train.losses.batches import slope  # noqa: E402


def logits(seed, places=4, vocabulary=9, scale=3.0):
    rng = torch.Generator().manual_seed(seed)
    return scale * torch.randn(places, vocabulary, generator=rng, dtype=torch.float64)


def by_hand(student, teacher, beta):
    """In plain floats, token by token."""

    def softmax(row):
        weights = [math.exp(value - max(row)) for value in row]
        return [weight / sum(weights) for weight in weights]

    def kl(p, q):
        return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))

    rows = [(softmax(s), softmax(t)) for s, t in zip(student.tolist(), teacher.tolist(), strict=True)]
    return [beta * kl(t, s) + (1 - beta) * kl(s, t) for s, t in rows]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 20), st.floats(0, 1))
def test_it_is_what_the_definition_says(seed, places, vocabulary, beta):
    student, teacher = logits(seed, places, vocabulary), logits(seed + 1, places, vocabulary)
    expected = by_hand(student, teacher, beta)
    assert divergence(student, teacher, beta).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    single = divergence(student.float(), teacher.float(), beta)
    assert (single >= 0).all()
    assert single.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.7, 1.0])
def test_gradients_are_finite_differences(beta):
    student, teacher = logits(1).requires_grad_(), logits(2)
    assert torch.autograd.gradcheck(lambda given: divergence(given, teacher, beta), student)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_equal_teacher_gives_exactly_nothing(dtype):
    """Without a hint the current policy teaches itself: not even rounding may move it."""
    student = logits(3, 5, 3000).to(dtype).requires_grad_()
    loss = divergence(student, student.detach())
    assert (loss == 0).all()
    assert (slope(loss.sum(), student) == 0).all()


def test_tokens_that_cannot_be():
    """Some vocabularies are padded with minus infinity."""
    student, teacher = logits(4).requires_grad_(), logits(5)
    never = torch.full((4, 2), -torch.inf)
    wide = torch.cat([student, never], 1)
    loss = divergence(wide, torch.cat([teacher, never], 1))
    torch.testing.assert_close(loss, divergence(student, teacher))
    torch.testing.assert_close(slope(loss.sum(), student), slope(divergence(student, teacher).sum(), student))
    lifted = divergence(wide, torch.cat([teacher, -never], 1).nan_to_num(posinf=0.0))
    assert (slope(lifted.sum(), student)).isfinite().all()


def test_the_teacher_gets_no_gradient():
    student, teacher = logits(6).requires_grad_(), logits(7).requires_grad_()
    divergence(student, teacher).sum().backward()
    assert student.grad is not None
    assert teacher.grad is None


@pytest.mark.parametrize(("beta", "width"), [(-0.1, 9), (1.1, 9), (0.5, 8)])
def test_what_does_not_fit_is_refused(beta, width):
    with pytest.raises(ValueError, match=r"beta lies|one vocabulary"):
        divergence(logits(0), logits(0, vocabulary=width), beta)


def choices(*tokens):
    return torch.nn.functional.one_hot(torch.tensor(tokens), 5).float()


def test_weights_fall_after_each_token_where_the_student_left_the_teacher():
    student, teacher = choices(0, 1, 2, 3, 0), choices(0, 2, 2, 4, 0)
    assert disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.5).tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.0).tolist() == [1, 1, 0, 0, 0]
    # The second token was sampled as the teacher would have it: what follows is a prefix it knows.
    assert disagreement_weights(student, teacher, [0, 2, 2, 3, 0], 0.5).tolist() == [1, 1, 1, 1, 0.5]


def test_only_actions_count():
    student, teacher = choices(0, 1, 2, 3, 0), choices(0, 2, 2, 4, 0)
    weights = disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.5, [1, 0, 1, 1, 1])
    assert weights.tolist() == [1, 0, 1, 1, 0.5]


def test_ratios_are_of_what_came_before():
    logp = torch.tensor([-1.0, -2.0, -1.0, -3.0], requires_grad=True)
    ratios = prefix_ratios(logp, torch.tensor([-1.5, -1.0, -3.0, 0.0]))
    expected = torch.tensor([0.0, 0.5, -0.5, 1.5]).exp().clamp(max=2.0)
    torch.testing.assert_close(ratios, expected)
    assert not ratios.requires_grad


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
