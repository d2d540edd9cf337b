"""Attention along a tree of tokens without a mask: a causal call for a node's own tokens, a full one for its context.

The two are merged by their log-sum-exps. Backward runs the same calls with the merged output and log-sum-exp, which
makes each call's share of the gradient that of the whole softmax, as in ring attention.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gametape.train import varlen_attention
from gametape.train.attention_plan import AttentionBucket, AttentionPlan

_ops: Any = torch.ops.aten
_BLOCK = 32
"""The kernel for CUDA that takes masks pads its log-sum-exps to whole blocks of queries, with infinity."""


def forward_of(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    if q.device.type == "cpu":
        out, lse = _ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask)
    else:
        out, lse, *_ = _ops._scaled_dot_product_efficient_attention(q, k, v, _spread(mask, q), True, 0.0, causal)
    return out, lse[..., : q.shape[2]]


def backward_of(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `out` and `lse` are those of the whole softmax, of which these keys are a part."""
    if q.device.type == "cpu":
        call = _ops._scaled_dot_product_flash_attention_for_cpu_backward
        grad_q, grad_k, grad_v = call(grad, q, k, v, out, lse, 0.0, causal, attn_mask=mask)
        return grad_q, grad_k, grad_v
    unused = torch.zeros(2, dtype=torch.uint64, device=q.device)  # the random state of dropout, which is off
    call = _ops._scaled_dot_product_efficient_attention_backward
    lse = functional.pad(lse, (0, -lse.shape[2] % _BLOCK), value=float("inf")).contiguous()
    wanted = [True, True, True, False]
    bias = _spread(mask, q)
    out = out.transpose(1, 2).contiguous().transpose(1, 2)  # in half precision it is read as forward lays it out
    grad_q, grad_k, grad_v, _ = call(grad, q, k, v, bias, out, lse, unused, unused, 0.0, wanted, causal)
    return grad_q, grad_k, grad_v


def _spread(mask: Tensor | None, q: Tensor) -> Tensor | None:
    return None if mask is None else mask.expand(-1, q.shape[1], q.shape[2], -1)


def tree_attention(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> Tensor:
    """[N, H, D]; H is a multiple of G, and consecutive query heads share a key head."""
    out_NHD: Tensor = _TreeAttention.apply(q_NHD, k_MGD, v_MGD, plan)
    return out_NHD


class _TreeAttention(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> Tensor:
        out_NHD, lse_HN = attend(q_NHD, k_MGD, v_MGD, plan)
        ctx.save_for_backward(q_NHD, k_MGD, v_MGD, out_NHD, lse_HN)
        ctx.plan = plan
        return out_NHD

    @staticmethod
    def backward(ctx: Any, grad_NHD: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q_NHD, k_MGD, v_MGD, out_NHD, lse_HN = ctx.saved_tensors
        return *attend_backward(grad_NHD, q_NHD, k_MGD, v_MGD, out_NHD, lse_HN, ctx.plan), None


def attend(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> tuple[Tensor, Tensor]:
    """The output, and the log-sum-exps [H, N] of the scores. Rows behind the plan's are zero."""
    if varlen_attention.takes(q_NHD):
        return varlen_attention.attend(q_NHD, k_MGD, v_MGD, plan)
    out_NHD = q_NHD.new_zeros(q_NHD.shape)
    lse_NH = q_NHD.new_zeros(q_NHD.shape[:2], dtype=torch.promote_types(q_NHD.dtype, torch.float32))
    for bucket in plan.own:
        rows_S, part_SHD, lse_SH = _attended(bucket, q_NHD, k_MGD, v_MGD)
        out_NHD.index_copy_(0, rows_S, part_SHD)
        lse_NH.index_copy_(0, rows_S, lse_SH)
    for bucket in plan.context:
        rows_S, part_SHD, lse_SH = _attended(bucket, q_NHD, k_MGD, v_MGD)
        own_SHD, own_lse_SH = out_NHD.index_select(0, rows_S), lse_NH.index_select(0, rows_S)
        share_SH1 = torch.sigmoid(lse_SH - own_lse_SH)[..., None].to(out_NHD.dtype)
        out_NHD.index_copy_(0, rows_S, torch.lerp(own_SHD, part_SHD, share_SH1))
        lse_NH.index_copy_(0, rows_S, torch.logaddexp(own_lse_SH, lse_SH))
    return out_NHD, lse_NH.t().contiguous()


def attend_backward(
    grad_NHD: Tensor,
    q_NHD: Tensor,
    k_MGD: Tensor,
    v_MGD: Tensor,
    out_NHD: Tensor,
    lse_HN: Tensor,
    plan: AttentionPlan,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v."""
    if varlen_attention.takes(q_NHD):
        return varlen_attention.attend_backward(grad_NHD, q_NHD, k_MGD, v_MGD, out_NHD, lse_HN, plan)
    grad_q_NHD, grad_k_MGD, grad_v_MGD = (torch.zeros_like(tensor) for tensor in (q_NHD, k_MGD, v_MGD))
    groups, repeats = k_MGD.shape[1], q_NHD.shape[1] // k_MGD.shape[1]
    lse_NH = lse_HN.t()
    for bucket in (*plan.own, *plan.context):
        queries_S, keys_K = bucket.queries_BS.flatten(), bucket.keys_BK.flatten()
        q_CRSD, out_CRSD = (_queries(tensor.index_select(0, queries_S), bucket, groups) for tensor in (q_NHD, out_NHD))
        k_CRKD, v_CRKD = (_keys(tensor, bucket, repeats) for tensor in (k_MGD, v_MGD))
        lse_CRS = _queries(lse_NH.index_select(0, queries_S)[..., None], bucket, groups)[..., 0]
        grad_CRSD = _queries(_without_padding(grad_NHD, bucket), bucket, groups)
        mask = _mask(bucket, q_NHD, groups)
        grads = backward_of(grad_CRSD, q_CRSD, k_CRKD, v_CRKD, out_CRSD, lse_CRS, mask, bucket.causal)
        grad_q_NHD.index_add_(0, queries_S, _rows(grads[0], bucket))
        grad_k_MGD.index_add_(0, keys_K, _rows(grads[1].sum(1, keepdim=True), bucket))
        grad_v_MGD.index_add_(0, keys_K, _rows(grads[2].sum(1, keepdim=True), bucket))
    return grad_q_NHD, grad_k_MGD, grad_v_MGD


def _attended(bucket: AttentionBucket, q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of a bucket's queries, their outputs over its keys alone, and the log-sum-exps of their scores."""
    groups, repeats = k_MGD.shape[1], q_NHD.shape[1] // k_MGD.shape[1]
    q_CRSD = _queries(q_NHD.index_select(0, bucket.queries_BS.flatten()), bucket, groups)
    k_CRKD, v_CRKD = (_keys(tensor, bucket, repeats) for tensor in (k_MGD, v_MGD))
    out_CRSD, lse_CRS = forward_of(q_CRSD, k_CRKD, v_CRKD, _mask(bucket, q_NHD, groups), bucket.causal)
    out_SHD, lse_SH = _rows(out_CRSD, bucket), _rows(lse_CRS[..., None], bucket)[..., 0]
    if bucket.real_M is not None:
        out_SHD, lse_SH = out_SHD[bucket.real_M], lse_SH[bucket.real_M]
    return bucket.rows_M, out_SHD, lse_SH


def _queries(rows_SHD: Tensor, bucket: AttentionBucket, groups: int) -> Tensor:
    """[B x S, H, D] as [B x G, R, S, D]: with the key heads in the batch, a repeated key head is a stride of zero."""
    batch, depth = len(bucket.queries_BS), rows_SHD.shape[-1]
    split_BSGRD = rows_SHD.view(batch, -1, groups, rows_SHD.shape[1] // groups, depth)
    return split_BSGRD.permute(0, 2, 3, 1, 4).flatten(0, 1)


def _keys(all_MGD: Tensor, bucket: AttentionBucket, repeats: int) -> Tensor:
    """[M, G, D] as [B x G, R, K, D]."""
    rows_BKGD = all_MGD.index_select(0, bucket.keys_BK.flatten()).view(*bucket.keys_BK.shape, *all_MGD.shape[1:])
    return rows_BKGD.transpose(1, 2).flatten(0, 1)[:, None].expand(-1, repeats, -1, -1)


def _rows(split_CRSD: Tensor, bucket: AttentionBucket) -> Tensor:
    """[B x G, R, S, D] as [B x S, H, D]."""
    batch = len(bucket.queries_BS)
    _, repeats, length, depth = split_CRSD.shape
    split_BGRSD = split_CRSD.view(batch, -1, repeats, length, depth)
    return split_BGRSD.permute(0, 3, 1, 2, 4).reshape(batch * length, -1, depth)


def _without_padding(grad_NHD: Tensor, bucket: AttentionBucket) -> Tensor:
    """The gradient of a bucket's outputs, zero where a query is padding, so that padding has no gradient."""
    if bucket.real_M is None:
        return grad_NHD.index_select(0, bucket.queries_BS.flatten())
    grad_SHD = grad_NHD.new_zeros(bucket.queries_BS.numel(), *grad_NHD.shape[1:])
    return grad_SHD.index_copy_(0, bucket.real_M, grad_NHD.index_select(0, bucket.rows_M))


def _mask(bucket: AttentionBucket, like: Tensor, groups: int) -> Tensor | None:
    """[B x G, 1, 1, K], to be added to the scores."""
    if bucket.hidden_BK is None:
        return None
    mask_BK = like.new_zeros(bucket.hidden_BK.shape).masked_fill_(bucket.hidden_BK, float("-inf"))
    return mask_BK.repeat_interleave(groups, 0)[:, None, None]
