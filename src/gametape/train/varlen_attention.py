"""Tree attention by the kernel of FlashAttention for spans of any length: one call for all own rows, read where they lie,
and one for all contexts. For CUDA in half precision.

The kernel's two arguments for dropout stand for nothing here: there is none.
"""

from typing import Any

import torch
from torch import Tensor

from gametape.train.attention_plan import AttentionPlan, VarlenCall

_ops: Any = torch.ops.aten


def takes(q_NHD: Tensor) -> bool:
    """Whether there is a kernel for heads such as these."""
    half = q_NHD.dtype in {torch.bfloat16, torch.float16}
    return q_NHD.is_cuda and half and q_NHD.shape[-1] % 8 == 0 and q_NHD.shape[-1] <= 256


def attend(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> tuple[Tensor, Tensor]:
    """The output, and the log-sum-exps [H, N] of the scores. Rows behind the plan's are zero."""
    q_NHD = _even(q_NHD)
    out_NHD, lse_HN = _padded_outputs(q_NHD, plan)
    for call in plan.varlen:
        q_SHD, k_KGD, v_KGD = _inputs(call, q_NHD, k_MGD, v_MGD, plan)
        part_SHD, lse_HS = _kernel(q_SHD, k_KGD, v_KGD, call)
        if call.queries_S is None:
            if plan.rows == len(q_NHD):
                out_NHD, lse_HN = part_SHD, lse_HS
            else:
                out_NHD[: plan.rows], lse_HN[:, : plan.rows] = part_SHD, lse_HS
            continue
        rows_S = call.queries_S
        own_SHD, own_lse_HS = out_NHD.index_select(0, rows_S), lse_HN.index_select(1, rows_S)
        share_SH1 = torch.sigmoid(lse_HS - own_lse_HS).t()[..., None].to(out_NHD.dtype)
        out_NHD.index_copy_(0, rows_S, torch.lerp(own_SHD, part_SHD, share_SH1))
        lse_HN.index_copy_(1, rows_S, torch.logaddexp(own_lse_HS, lse_HS))
    return out_NHD, lse_HN


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
    grad_NHD, q_NHD = _even(grad_NHD), _even(q_NHD)
    padded = plan.rows < len(q_NHD)
    make = torch.zeros_like if padded or plan.first or len(k_MGD) > plan.rows else torch.empty_like
    grads = [make(one, memory_format=torch.contiguous_format) for one in (q_NHD, k_MGD, v_MGD)]
    keys = slice(plan.first, plan.first + plan.rows)
    for call in plan.varlen:
        q_SHD, k_KGD, v_KGD = _inputs(call, q_NHD, k_MGD, v_MGD, plan)
        if call.queries_S is None:
            ends = grad_NHD[: plan.rows], out_NHD[: plan.rows], lse_HN[:, : plan.rows]
        else:
            ends = (
                grad_NHD.index_select(0, call.queries_S),
                out_NHD.index_select(0, call.queries_S),
                lse_HN.index_select(1, call.queries_S),
            )
        found = _kernel_backward(*ends, q_SHD, k_KGD, v_KGD, call)
        if call.queries_S is None and make is torch.empty_like:
            grads = list(found)
        elif call.queries_S is None:
            for total, part, rows in zip(grads, found, (slice(plan.rows), keys, keys), strict=True):
                total[rows] = part
        else:
            for total, part, rows_S in zip(grads, found, (call.queries_S, call.keys_K, call.keys_K), strict=True):
                total.index_add_(0, rows_S, part)
    return grads[0], grads[1], grads[2]


def _inputs(
    call: VarlenCall, q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan
) -> tuple[Tensor, Tensor, Tensor]:
    if call.queries_S is None or call.keys_K is None:
        keys = slice(plan.first, plan.first + plan.rows)
        return q_NHD[: plan.rows], _even(k_MGD)[keys], _even(v_MGD)[keys]
    keys_K = call.keys_K
    return q_NHD.index_select(0, call.queries_S), k_MGD.index_select(0, keys_K), v_MGD.index_select(0, keys_K)


def _kernel(q_SHD: Tensor, k_KGD: Tensor, v_KGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor]:
    ends, most = (call.query_ends, call.key_ends), (call.most_queries, call.most_keys)
    out_SHD, lse_HS, *_ = _ops._flash_attention_forward(
        q_SHD, k_KGD, v_KGD, *ends, *most, 0.0, call.queries_S is None, False
    )
    return out_SHD, lse_HS


def _kernel_backward(
    grad_SHD: Tensor,
    out_SHD: Tensor,
    lse_HS: Tensor,
    q_SHD: Tensor,
    k_KGD: Tensor,
    v_KGD: Tensor,
    call: VarlenCall,
) -> tuple[Tensor, Tensor, Tensor]:
    unused = torch.zeros(2, dtype=torch.uint64, device=q_SHD.device)
    ends, most = (call.query_ends, call.key_ends), (call.most_queries, call.most_keys)
    states = out_SHD, lse_HS.contiguous(), *ends, *most, 0.0, call.queries_S is None
    grad_q, grad_k, grad_v = _ops._flash_attention_backward(
        grad_SHD, q_SHD, k_KGD, v_KGD, *states, unused, unused[:0]
    )
    return grad_q, grad_k, grad_v


def _padded_outputs(q_NHD: Tensor, plan: AttentionPlan) -> tuple[Tensor, Tensor]:
    """Empty where the kernel's own will take their place."""
    if plan.rows == len(q_NHD):
        return q_NHD, q_NHD
    out_NHD = q_NHD.new_empty(q_NHD.shape)
    out_NHD[plan.rows :] = 0
    return out_NHD, q_NHD.new_zeros(q_NHD.shape[1], len(q_NHD), dtype=torch.float32)


def _even(tensor_NHD: Tensor) -> Tensor:
    """Each row in one piece, as the kernel reads them."""
    return tensor_NHD if tensor_NHD.stride(-1) == 1 else tensor_NHD.contiguous()
