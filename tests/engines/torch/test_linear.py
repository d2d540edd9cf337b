"""Layouts of weights differ in speed alone."""

import pytest

torch = pytest.importorskip("torch")

from gametape.engines.torch.linear import PackedLinear, PlainLinear, fastest_linear  # noqa: E402

KINDS = [PlainLinear, PackedLinear] if torch.backends.mkldnn.is_available() else [PlainLinear]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 33])
@pytest.mark.parametrize("biased", [False, True])
def test_products_follow_the_weights(kind, rows, biased):
    weight, bias, x = torch.randn(48, 32), torch.randn(48) if biased else None, torch.randn(rows, 32)
    product = kind(weight, bias)
    for _ in range(2):
        expected = x.double() @ weight.double().T + (bias.double() if biased else 0)
        torch.testing.assert_close(product(x).double(), expected, atol=1e-4, rtol=0)
        weight.mul_(-0.5)
        product.refresh()


@pytest.mark.skipif(PackedLinear not in KINDS, reason="built without oneDNN")
def test_a_packed_row_does_not_depend_on_its_company():
    """Exactly: this is what keeps a seeded rollout the same in any batch."""
    product, x = PackedLinear(torch.randn(960, 576), None), torch.randn(64, 576)
    whole = product(x)
    for rows in (1, 2, 3, 16, 31):
        assert torch.equal(product(x[:rows].contiguous()), whole[:rows])


def test_a_network_too_large_for_a_copy_is_left_as_it_is():
    assert fastest_linear(torch.randn(8, 8), 1 << 50) is PlainLinear
