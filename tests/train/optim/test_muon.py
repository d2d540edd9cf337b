"""Muon's direction is the orthogonal factor that a singular value decomposition finds."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.train.optim import Muon, orthogonalise  # noqa: E402


def matrix(seed, rows, columns, smallest, scale=1.0):
    """With singular values spread evenly, in their logarithm, from 1 down to the smallest."""
    rng = torch.Generator().manual_seed(seed)
    u, _, vh = torch.linalg.svd(torch.randn(rows, columns, generator=rng, dtype=torch.float64), full_matrices=False)
    values = torch.logspace(0, float(torch.tensor(smallest).log10()), min(rows, columns), dtype=torch.float64)
    return scale * u * values @ vh, u @ vh


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1e-4, 1.0, 1e4]))
def test_it_is_the_orthogonal_factor(seed, rows, columns, scale):
    given_, expected = matrix(seed, rows, columns, 0.02, scale)
    torch.testing.assert_close(orthogonalise(given_.float()).double(), expected, rtol=0, atol=0.01)


def test_small_directions_are_lifted():
    given_, expected = matrix(1, 24, 64, 1e-3)
    torch.testing.assert_close(orthogonalise(given_.float()).double(), expected, rtol=0, atol=0.05)


def test_nothing_stays_nothing():
    assert (orthogonalise(torch.zeros(3, 4)) == 0).all()


def test_an_update_has_the_size_of_one_of_adamw():
    """And follows momentum: the second step leans on the first."""
    param = torch.nn.Parameter(torch.zeros(16, 48))
    first, _ = matrix(2, 16, 48, 0.1)
    muon = Muon([param], lr=0.01)
    param.grad = first.float()
    muon.step()
    assert param.pow(2).mean().sqrt().item() == pytest.approx(0.01 * 0.2, rel=0.02)
    assert (param * first).sum() < 0
    before = param.detach().clone()
    second, _ = matrix(3, 16, 48, 0.1)
    param.grad = second.float()
    muon.step()
    momentum = 0.95 * (0.05 * first) + 0.05 * second
    expected, _, vh = torch.linalg.svd(0.05 * second + 0.95 * momentum, full_matrices=False)
    moved = (param.detach() - before).double() / (-0.01 * 0.2 * 48**0.5)
    torch.testing.assert_close(moved, expected @ vh, rtol=0, atol=0.02)


def test_decay_is_apart_from_the_gradient():
    param = torch.nn.Parameter(torch.ones(4, 4))
    param.grad = torch.zeros(4, 4)
    Muon([param], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(param.detach(), torch.full((4, 4), 0.95))


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="matrices"):
        Muon([torch.nn.Parameter(torch.zeros(4))], lr=0.1)
