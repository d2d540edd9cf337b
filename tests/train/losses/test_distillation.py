"""Both directions of KL, exact and safe."""

import math

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.train.losses import divergence  # noqa: E402
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
    found = divergence(student, student.detach())
    assert (found == 0).all()
    assert (slope(found.sum(), student) == 0).all()


def test_tokens_that_cannot_be():
    """Some vocabularies are padded with minus infinity."""
    student, teacher = logits(4).requires_grad_(), logits(5)
    never = torch.full((4, 2), -torch.inf)
    wide = torch.cat([student, never], 1)
    found = divergence(wide, torch.cat([teacher, never], 1))
    torch.testing.assert_close(found, divergence(student, teacher))
    torch.testing.assert_close(slope(found.sum(), student), slope(divergence(student, teacher).sum(), student))
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
