"""Attention along a tree is the softmax over each token's line, written out with a mask; on CUDA where there is one."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train.packing import TokenNode, pack_nodes  # noqa: E402
from gametape.train.tree_attention import tree_attention  # noqa: E402

from .trees import GROUP  # noqa: E402

LIVE = [TokenNode(node.ids, node.parent, node.at) for node in GROUP]
HEADS, GROUPS, DEPTH = 6, 2, 16
DEVICES = [
    ("cpu", torch.float64, 1e-12),
    ("cpu", torch.float32, 1e-5),
    ("cuda", torch.float32, 1e-4),
    ("cuda", torch.bfloat16, 1e-2),
]


def masked(q, k, v, packed):
    """The same with every score there is, and those outside of a token's line left out."""
    seen = torch.zeros(len(q), len(k), dtype=torch.bool)
    for rows, line in zip(packed.rows, packed.paths, strict=True):
        for row in range(rows.start, rows.stop):
            seen[row, line[: len(line) - (rows.stop - 1 - row)]] = True
    repeated_k, repeated_v = (one.repeat_interleave(HEADS // GROUPS, 1) for one in (k, v))
    scores = torch.einsum("nhd,mhd->hnm", q, repeated_k) / DEPTH**0.5
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return torch.einsum("hnm,mhd->nhd", weights, repeated_v)


@pytest.mark.parametrize(("device", "dtype", "tolerance"), DEVICES)
def test_outputs_and_gradients_are_those_of_the_masked_softmax(device, dtype, tolerance):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    torch.manual_seed(0)
    packed = pack_nodes(LIVE)
    rows = len(packed.ids_N)
    inputs = [torch.randn(rows, heads, DEPTH, dtype=torch.float64) for heads in (HEADS, GROUPS, GROUPS)]
    back = torch.randn(rows, HEADS, DEPTH, dtype=torch.float64)
    exact = [one.to(dtype).double().requires_grad_() for one in inputs]
    expected = masked(*exact, packed)
    asked = [one.to(device, dtype).requires_grad_() for one in inputs]
    found = tree_attention(*asked, packed.to(device).plan)
    pairs = [(found.detach(), expected.detach())]
    pairs += zip(
        torch.autograd.grad(found, asked, back.to(device, dtype)),
        torch.autograd.grad(expected, exact, back),
        strict=True,
    )
    for one, other in pairs:
        assert float((one.double().cpu() - other).abs().max() / other.abs().max()) < tolerance
