"""Tree attention by kernels for spans of any length, or of one: a call for all own rows and one for all contexts, read
where they lie if that is side by side. For CUDA in half precision.
"""

from collections.abc import Sequence
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
    own = [call for call in plan.varlen if call.causal]
    outs, lses = zip(*(_forward(*_inputs(q_NHD, k_MGD, v_MGD, call), call) for call in own), strict=True)
    out_NHD, lse_HN = _joined(outs), _joined(lses, 1)
    if behind := len(q_NHD) - plan.rows:
        out_NHD, lse_HN = functional.pad(out_NHD, (0, 0, 0, 0, 0, behind)), functional.pad(lse_HN, (0, behind))
    for call in plan.varlen[len(own) :]:
        part_SHD, lse_HS = _forward(*_inputs(q_NHD, k_MGD, v_MGD, call), call)
        own_SHD, own_lse_HS = _taken(out_NHD, call.queries), _taken(lse_HN, call.queries, 1)
        share_SH1 = torch.sigmoid(lse_HS - own_lse_HS).t()[..., None].to(out_NHD.dtype)
        _put(out_NHD, call.queries, torch.lerp(own_SHD, part_SHD, share_SH1))
        _put(lse_HN, call.queries, torch.logaddexp(own_lse_HS, lse_HS), 1)
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

    def of_call(call: VarlenCall) -> list[Tensor]:
        ends = _taken(grad_NHD, call.queries), _taken(out_NHD, call.queries), _taken(lse_HN, call.queries, 1)
        return _backward(*ends, *_inputs(q_NHD, k_MGD, v_MGD, call), call)

    own, *contexts = [call for call in plan.varlen if call.learned]
    grads, rows = of_call(own), plan.learned_rows
    if rows < len(k_MGD) or rows < len(q_NHD):
        before, behind = plan.first, len(k_MGD) - plan.first - rows
        sides = ((0, len(q_NHD) - rows), (before, behind), (before, behind))
        grads = [functional.pad(grad, (0, 0, 0, 0, *side)) for grad, side in zip(grads, sides, strict=True)]
    for call in contexts:
        for grad, part, at in zip(grads, of_call(call), (call.queries, call.keys, call.keys), strict=True):
            _add(grad, at, part)
    return grads[0], grads[1], grads[2]


def _inputs(q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor, Tensor]:
    q_SHD, k_KGD, v_KGD = _taken(q_NHD, call.queries), _taken(k_MGD, call.keys), _taken(v_MGD, call.keys)
    return _in_pieces(q_SHD), _in_pieces(k_KGD), _in_pieces(v_KGD)


def _joined(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim)


def _taken(tensor: Tensor, rows: slice | Tensor, dim: int = 0) -> Tensor:
    """A view where the rows lie side by side."""
    if isinstance(rows, slice):
        return tensor.narrow(dim, rows.start, rows.stop - rows.start)
    return tensor.index_select(dim, rows)


def _put(tensor: Tensor, rows: slice | Tensor, values: Tensor, dim: int = 0) -> None:
    if isinstance(rows, slice):
        _taken(tensor, rows, dim).copy_(values)
    else:
        tensor.index_copy_(dim, rows, values)


def _add(tensor: Tensor, rows: slice | Tensor, values: Tensor) -> None:
    if isinstance(rows, slice):
        tensor[rows] += values
    else:
        tensor.index_add_(0, rows, values)


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
