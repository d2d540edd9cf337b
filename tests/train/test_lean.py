"""The lean norm and gated unit are the plain ones."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from gametape.train.forward import rms_norm, silu_gate  # noqa: E402


@pytest.mark.parametrize("shape", [(7, 12), (7, 3, 12)])
def test_the_norm_and_its_gradients(shape):
    torch.manual_seed(0)
    x, weight = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True),
        torch.randn(12, dtype=torch.float64, requires_grad=True),
    )
    pair = rms_norm(x, weight, 1e-5), functional.rms_norm(x, (12,), weight, 1e-5)
    torch.testing.assert_close(*pair)
    back = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(*(torch.autograd.grad(one, (x, weight), back) for one in pair))


def test_the_gated_unit_and_its_gradients():
    torch.manual_seed(0)
    gate, up, back = (torch.randn(7, 12, dtype=torch.float64, requires_grad=True) for _ in range(3))
    pair = silu_gate(gate, up), functional.silu(gate) * up
    torch.testing.assert_close(*pair)
    torch.testing.assert_close(*(torch.autograd.grad(one, (gate, up), back.detach()) for one in pair))


def test_half_precision_is_summed_in_float32():
    x = torch.full((1, 4096), 300.0, dtype=torch.bfloat16)
    assert rms_norm(x, torch.ones(4096, dtype=torch.bfloat16), 0.0).eq(1).all()
