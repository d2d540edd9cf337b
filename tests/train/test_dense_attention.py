"""Spans of one length are handed to a dense kernel as heads, and come back as rows. The kernel of CUDA is written out
here, with the shapes that it takes and gives."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from gametape.train import dense_attention  # noqa: E402
from gametape.train.attention_plan import equal_spans  # noqa: E402
from gametape.train.dense_attention import DenseAttention, chosen_kernel  # noqa: E402
from gametape.train.packing import TokenNode, pack_nodes  # noqa: E402

from .test_varlen_attention import DEPTH, GROUPS, HEADS, backward, forward  # noqa: E402
from .trees import ids  # noqa: E402

SPANS, LENGTH = 3, 7


def scores_of(q, k, causal):
    """[B, H, S, K]; consecutive query heads share a key head."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q @ k.transpose(2, 3) / DEPTH**0.5
    hidden = ~torch.ones(scores.shape[2:], dtype=torch.bool).tril()
    return (scores.masked_fill(hidden, float("-inf")) if causal else scores), k


def dense_forward(q, k, v, bias, with_lse, dropout, causal, debug):
    assert (bias, with_lse, dropout, debug) == (None, True, 0.0, False)
    scores, _ = scores_of(q, k, causal)
    return scores.softmax(-1) @ v.repeat_interleave(HEADS // v.shape[1], 1), scores.logsumexp(-1, keepdim=True)


def dense_backward(grad, q, k, v, out, lse, seed, offset, bias, ends_q, ends_k, most_q, most_k, dropout, causal):
    assert (seed.dim(), offset.dim(), bias, ends_q, ends_k, dropout) == (0, 0, None, None, None, 0.0)
    assert (most_q, most_k, lse.shape) == (q.shape[2], k.shape[2], (*q.shape[:3], 1))
    scores, wide_k = scores_of(q, k, causal)
    probs = (scores - lse).exp()
    wide_v = v.repeat_interleave(HEADS // v.shape[1], 1)
    slope = probs * (grad @ wide_v.transpose(2, 3) - (grad * out).sum(-1, keepdim=True)) / DEPTH**0.5
    found = slope.transpose(2, 3) @ q, probs.transpose(2, 3) @ grad
    return slope @ wide_k, *(one.unflatten(1, (k.shape[1], -1)).sum(2) for one in found)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("repeats", [True, False])
def test_rows_go_to_a_dense_kernel_and_back(repeats, causal, monkeypatch):
    ops = SimpleNamespace(
        _scaled_dot_product_cudnn_attention=dense_forward, _scaled_dot_product_cudnn_attention_backward=dense_backward
    )
    monkeypatch.setattr(dense_attention, "_ops", ops)
    torch.manual_seed(0)
    sizes = [HEADS, GROUPS, GROUPS, HEADS, HEADS]
    q, k, v, grad, other = (torch.randn(SPANS * LENGTH, size, DEPTH, dtype=torch.float64) for size in sizes)
    dense, call = DenseAttention(repeats), equal_spans(SPANS, LENGTH, causal, "cpu")
    found, expected = dense.forward(q, k, v, call), forward(q, k, v, call)
    torch.testing.assert_close(found, expected)
    merged = expected[0].lerp(other, 0.5), expected[1] + 0.7
    ends = grad, *merged, q, k, v, call
    torch.testing.assert_close(dense.backward(*ends), backward(*ends))


def test_only_shapes_that_come_back_are_worth_a_plan():
    """Nothing is tried where no device is: those that are worth it would be."""
    usual, rows = (forward, backward), torch.zeros(1, HEADS, DEPTH)

    def asked(*lengths):
        own, *_ = pack_nodes([TokenNode(ids(length)) for length in lengths]).plan.varlen
        return own.spans, chosen_kernel(rows, rows, own, usual) is usual

    assert asked(5, 6) == (0, True)
    assert asked(1000) == (1, True)
    own, context = pack_nodes([TokenNode(ids(9)), TokenNode(ids(4), 0, at=5), TokenNode(ids(4), 0, at=5)]).plan.varlen
    assert (own.spans, context.spans) == (0, 1)
    assert pack_nodes([TokenNode(ids(5))] * 3).plan.varlen[0].spans == 3
