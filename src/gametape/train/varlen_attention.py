"""Tree attention by kernels for spans of any length, or of one: a call for all own rows, read where they lie, and one
for all contexts. For CUDA in half precision.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gametape.train.attention_plan import AttentionPlan, VarlenCall
from gametape.train.dense_attention import chosen_kernel

_ops: Any = torch.ops.aten


def takes(q_NHD: Tensor) -> bool:
    """Whether there is a kernel for heads such as these."""
    half = q_NHD.dtype in {torch.bfloat16, torch.float16}
    return q_NHD.is_cuda and half and q_NHD.shape[-1] % 8 == 0 and q_NHD.shape[-1] <= 256


def attend(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> tuple[Tensor, Tensor]:
    """The output, and the log-sum-exps [H, N] of the scores. Rows behind the plan's are zero."""
    own, *contexts = plan.varlen
    out_NHD, lse_HN = _forward(*_own_rows(q_NHD, k_MGD, v_MGD, plan), own)
    if behind := len(q_NHD) - plan.rows:
        out_NHD, lse_HN = functional.pad(out_NHD, (0, 0, 0, 0, 0, behind)), functional.pad(lse_HN, (0, behind))
    for call in contexts:
        part_SHD, lse_HS = _forward(*_context_rows(q_NHD, k_MGD, v_MGD, call), call)
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
    own, *contexts = plan.varlen
    rows = plan.rows
    inputs = _own_rows(q_NHD, k_MGD, v_MGD, plan)
    grads = _backward(grad_NHD[:rows], out_NHD[:rows], lse_HN[:, :rows], *inputs, own)
    if rows < len(k_MGD) or rows < len(q_NHD):
        before, behind = plan.first, len(k_MGD) - plan.first - rows
        sides = ((0, len(q_NHD) - rows), (before, behind), (before, behind))
        grads = [functional.pad(grad, (0, 0, 0, 0, *side)) for grad, side in zip(grads, sides, strict=True)]
    for call in contexts:
        ends = (grad_NHD.index_select(0, call.queries_S), out_NHD.index_select(0, call.queries_S))
        inputs = _context_rows(q_NHD, k_MGD, v_MGD, call)
        parts = _backward(*ends, lse_HN.index_select(1, call.queries_S), *inputs, call)
        for grad, part, rows_S in zip(grads, parts, (call.queries_S, call.keys_K, call.keys_K), strict=True):
            grad.index_add_(0, rows_S, part)
    return grads[0], grads[1], grads[2]


def _own_rows(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, plan: AttentionPlan) -> tuple[Tensor, Tensor, Tensor]:
    keys = slice(plan.first, plan.first + plan.rows)
    return _in_pieces(q_NHD[: plan.rows]), _in_pieces(k_MGD[keys]), _in_pieces(v_MGD[keys])


def _context_rows(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor, Tensor]:
    keys_K = call.keys_K
    return q_NHD.index_select(0, call.queries_S), k_MGD.index_select(0, keys_K), v_MGD.index_select(0, keys_K)


def _in_pieces(tensor_SHD: Tensor) -> Tensor:
    """Each head of a row in one piece, as the kernel reads them."""
    return tensor_SHD if tensor_SHD.stride(-1) == 1 else tensor_SHD.contiguous()


def _forward(q_SHD: Tensor, k_KGD: Tensor, v_KGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor]:
    forward, _ = chosen_kernel(q_SHD, k_KGD, call, (flash_forward, flash_backward))
    return forward(q_SHD, k_KGD, v_KGD, call)


def _backward(
    grad_SHD: Tensor,
    out_SHD: Tensor,
    lse_HS: Tensor,
    q_SHD: Tensor,
    k_KGD: Tensor,
    v_KGD: Tensor,
    call: VarlenCall,
) -> list[Tensor]:
    """`out` and `lse` are those of the whole softmax, of which these keys are a part."""
    _, backward = chosen_kernel(q_SHD, k_KGD, call, (flash_forward, flash_backward))
    return backward(grad_SHD, out_SHD, lse_HS, q_SHD, k_KGD, v_KGD, call)


def flash_forward(q_SHD: Tensor, k_KGD: Tensor, v_KGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor]:
    spans = call.query_ends, call.key_ends, call.most_queries, call.most_keys
    out_SHD, lse_HS, *_ = _ops._flash_attention_forward(q_SHD, k_KGD, v_KGD, *spans, 0.0, call.causal, False)
    return out_SHD, lse_HS


def flash_backward(
    grad_SHD: Tensor,
    out_SHD: Tensor,
    lse_HS: Tensor,
    q_SHD: Tensor,
    k_KGD: Tensor,
    v_KGD: Tensor,
    call: VarlenCall,
) -> list[Tensor]:
    """`out` and `lse` are those of the whole softmax, of which these keys are a part."""
    spans = call.query_ends, call.key_ends, call.most_queries, call.most_keys
    unused = torch.empty(2, dtype=torch.uint64, device=q_SHD.device)  # the random state of dropout, which is off
    ends = grad_SHD, q_SHD, k_KGD, v_KGD, out_SHD, lse_HS.contiguous()
    return list(_ops._flash_attention_backward(*ends, *spans, 0.0, call.causal, unused, unused[:0]))
