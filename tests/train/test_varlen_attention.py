"""The calls for spans of any length, with a kernel written out in place of CUDA's, give what padded calls give."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from gametape.train import varlen_attention  # noqa: E402
from gametape.train.packing import TokenNode, pack_nodes  # noqa: E402
from gametape.train.tree_attention import attend, attend_backward  # noqa: E402

from .trees import GROUP, ids  # noqa: E402

HEADS, GROUPS, DEPTH = 4, 2, 8


def scores_of(q_SHD, k_KGD, at, call):
    """Of one span [H, S, K], and its rows."""
    queries, keys = (slice(int(ends[at]), int(ends[at + 1])) for ends in (call.query_ends, call.key_ends))
    k_KHD = k_KGD[keys].repeat_interleave(HEADS // GROUPS, 1)
    scores = torch.einsum("shd,khd->hsk", q_SHD[queries], k_KHD) / DEPTH**0.5
    if call.causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[1:], dtype=torch.bool).tril(), float("-inf"))
    assert scores.shape[1] <= call.most_queries
    assert scores.shape[2] <= call.most_keys
    return scores, queries, keys


def forward(q_SHD, k_KGD, v_KGD, call):
    out, lse = torch.full_like(q_SHD, float("nan")), q_SHD.new_full((HEADS, len(q_SHD)), float("nan"))
    for at in range(len(call.query_ends) - 1):
        scores, queries, keys = scores_of(q_SHD, k_KGD, at, call)
        v_KHD = v_KGD[keys].repeat_interleave(HEADS // GROUPS, 1)
        out[queries] = torch.einsum("hsk,khd->shd", scores.softmax(-1), v_KHD)
        lse[:, queries] = scores.logsumexp(-1)
    return out, lse


def backward(grad_SHD, out_SHD, lse_HS, q_SHD, k_KGD, v_KGD, call):
    grads = [torch.zeros_like(one) for one in (q_SHD, k_KGD, v_KGD)]
    for at in range(len(call.query_ends) - 1):
        scores, queries, keys = scores_of(q_SHD, k_KGD, at, call)
        probs = (scores - lse_HS[:, queries, None]).exp()
        v_KHD, k_KHD = (one[keys].repeat_interleave(HEADS // GROUPS, 1) for one in (v_KGD, k_KGD))
        grad, out = grad_SHD[queries], out_SHD[queries]
        slope = torch.einsum("shd,khd->hsk", grad, v_KHD) - (grad * out).sum(-1).t()[..., None]
        slope = probs * slope / DEPTH**0.5
        found = [
            torch.einsum("hsk,khd->shd", slope, k_KHD),
            torch.einsum("hsk,shd->khd", slope, q_SHD[queries]).unflatten(1, (GROUPS, -1)).sum(2),
            torch.einsum("hsk,shd->khd", probs, grad).unflatten(1, (GROUPS, -1)).sum(2),
        ]
        for total, part, rows in zip(grads, found, (queries, keys, keys), strict=True):
            total[rows] += part
    return grads


TREES = {
    "a group": GROUP,
    "lines alone": [TokenNode(ids(9)), TokenNode(ids(30)), TokenNode(ids(1))],
    "a prompt and its rollouts": [TokenNode(ids(20)), *(TokenNode(ids(7 + one), 0, at=12) for one in range(4))],
}


@pytest.mark.parametrize("padding", [0, 13])
@pytest.mark.parametrize("name", TREES)
def test_outputs_and_gradients_are_those_of_padded_calls(name, padding, monkeypatch):
    monkeypatch.setattr(varlen_attention, "_forward", forward)
    monkeypatch.setattr(varlen_attention, "_backward", backward)
    packed = pack_nodes(TREES[name])
    for plan in (packed.plan, packed.detached_plan, packed.whole_plan):
        if not plan.rows:
            continue
        torch.manual_seed(0)
        keys = plan.first + plan.rows
        sizes = [(plan.rows, HEADS), (keys, GROUPS), (keys, GROUPS), (plan.rows, HEADS)]
        inputs = [torch.randn(rows, heads, DEPTH, dtype=torch.float64) for rows, heads in sizes]
        inputs[3][plan.learned_rows :] = 0
        q, k, v, grad = (functional.pad(one, (0, 0, 0, 0, 0, padding)) for one in inputs)
        found, expected = varlen_attention.attend(q, k, v, plan), attend(q, k, v, plan)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
        assert not found[0][plan.rows :].any()
        ends = grad, q, k, v, *expected, plan
        torch.testing.assert_close(varlen_attention.attend_backward(*ends), attend_backward(*ends), atol=1e-12, rtol=0)
