"""Kernels of our own do what torch does, and torch does it where they cannot be compiled."""

import pytest

torch = pytest.importorskip("torch")

from gametape.engines.torch import elementwise  # noqa: E402
from gametape.engines.torch.c_kernels import compile_kernels  # noqa: E402
from gametape.engines.torch.elementwise import add_and_norm, apply_rotary, silu_gate  # noqa: E402

ROWS = [1, 3, 70]
"""The last are shared out among threads."""


@pytest.fixture(params=["own", "torch"])
def _kernels(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(elementwise, "_library", lambda: None)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("rows", ROWS)
def test_adding_and_normalising(rows):
    hidden, more, gain = torch.randn(rows, 576), torch.randn(rows, 576) * 30, torch.randn(576)
    for given in (None, more):
        expected = hidden.double() + (0 if given is None else given.double())
        got = add_and_norm(hidden, given, gain, 1e-5)
        torch.testing.assert_close(hidden.double(), expected, atol=1e-5, rtol=0)
        scaled = expected * (expected.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gain.double()
        torch.testing.assert_close(got.double(), scaled, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("rows", ROWS)
def test_gating(rows):
    """Also far out, where an exponential would overflow."""
    gate_up = torch.randn(rows, 2 * 500)
    gate_up[0, :6] = torch.tensor([-1e4, -100, -88, 88, 100, 1e4])
    gate, up = gate_up.double().chunk(2, -1)
    torch.testing.assert_close(silu_gate(gate_up).double(), gate * gate.sigmoid() * up, atol=1e-5, rtol=1e-6)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("rows", ROWS)
def test_turning_leaves_the_other_heads_alone(rows):
    packed, angles = torch.randn(rows, 9, 16), torch.randn(rows, 1, 8).repeat(1, 1, 2)
    before = packed.clone()
    signs = torch.tensor([-1.0] * 8 + [1.0] * 8)
    got = apply_rotary(packed[:, :7], angles.cos(), angles.sin() * signs)
    low, high = before[:, :7].double().chunk(2, -1)
    cos, sin = angles[..., :8].double().cos(), angles[..., :8].double().sin()
    expected = torch.cat((low * cos - high * sin, high * cos + low * sin), -1)
    torch.testing.assert_close(got.double(), expected, atol=1e-5, rtol=0)
    assert torch.equal(packed[:, 7:], before[:, 7:])


@pytest.mark.usefixtures("_kernels")
def test_what_is_not_a_number_stays_that():
    x = torch.full((2, 32), float("nan"))
    assert silu_gate(x).isnan().all()
    assert add_and_norm(x, None, torch.ones(32), 1e-5).isnan().all()


@pytest.mark.parametrize("compiler", ["there-is-no-such-compiler", "false"])
def test_without_a_compiler_there_are_no_kernels(compiler, monkeypatch, caplog):
    monkeypatch.setenv("CC", compiler)
    assert compile_kernels("elementwise", {}) is None
    assert "elementwise.c" in caplog.text
