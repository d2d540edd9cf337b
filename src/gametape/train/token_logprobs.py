"""Log-probs of chosen tokens and entropies, without the logits of all rows: in chunks, in the backward too. On CUDA
what follows the product of a chunk is compiled into few passes over its logits."""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LOGITS_AT_A_TIME = {"cpu": 1 << 23, "cuda": 1 << 28}
"""How many logits make a chunk where the caller does not say: 32 MB and 1 GB in float32."""
BYTES_PER_LOGIT = {"cpu": 12, "cuda": 6}
"""What a logit takes while it is there, with what is computed from it."""
_CHUNK_SIZES = 4
"""On CUDA chunks are padded to one of so many sizes: there is a compilation for each."""


def token_logprobs(
    hidden_ME: Tensor, head_VE: Tensor, targets_M: Tensor, temperature: float = 1.0, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """The log-prob of each target, and the entropy of each distribution, both [M] in float32 or better.

    `chunk` is the number of rows whose logits exist at a time. Differentiable in `hidden_ME` and `head_VE`.
    """
    rows = chunk or max(1, LOGITS_AT_A_TIME[hidden_ME.device.type] // len(head_VE))
    if not hidden_ME.is_cuda:
        logp_M, entropy_M = _TokenLogprobs.apply(hidden_ME, head_VE, targets_M, temperature, rows)
        return logp_M, entropy_M
    count = len(hidden_ME)
    rows = even_chunk(count, rows)
    hidden_ME = functional.pad(hidden_ME, (0, 0, 0, -count % rows))
    targets_M = functional.pad(targets_M, (0, -count % rows))
    logp_M, entropy_M = _TokenLogprobs.apply(hidden_ME, head_VE, targets_M, temperature, rows)
    return logp_M[:count], entropy_M[:count]


def even_chunk(count: int, most: int) -> int:
    """The rows of a chunk where `count` rows are dealt to as few chunks of at most `most` rows as there can be."""
    step = max(1, most // _CHUNK_SIZES)
    each = -(-count // max(1, -(-count // most)))
    return min(most, max(step, -(-each // step) * step))


def span_logits(hidden_SE: Tensor, head_VE: Tensor, temperature: float = 1.0) -> Tensor:
    """All logits [S, V] of a span short enough to have them, in float32 or better."""
    logits_SV: Tensor = _WideProduct.apply(hidden_SE, head_VE)
    return logits_SV if temperature == 1.0 else logits_SV / temperature


class _WideProduct(torch.autograd.Function):  # type: ignore[misc]
    """Logits that are never rounded to 16 bits, with gradients in the precision of their factors."""

    @staticmethod
    def forward(ctx: Any, hidden_SE: Tensor, head_VE: Tensor) -> Tensor:
        ctx.save_for_backward(hidden_SE, head_VE)
        return wide_logits(hidden_SE, head_VE, 1.0)

    @staticmethod
    def backward(ctx: Any, grad_SV: Tensor) -> tuple[Tensor | None, Tensor | None]:
        hidden_SE, head_VE = ctx.saved_tensors
        for_hidden, for_head = ctx.needs_input_grad
        grad_SV = grad_SV.to(hidden_SE.dtype)
        return grad_SV @ head_VE if for_hidden else None, grad_SV.t() @ hidden_SE if for_head else None


class _TokenLogprobs(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, hidden_ME: Tensor, head_VE: Tensor, targets_M: Tensor, temperature: float, rows: int
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden_ME.dtype, torch.float32)
        logp_M, entropy_M, lse_M = (hidden_ME.new_empty(len(hidden_ME), dtype=wide) for _ in range(3))
        for start in range(0, len(hidden_ME), rows):
            at = slice(start, start + rows)
            logits_CV = wide_logits(hidden_ME[at], head_VE, temperature)
            found = _fused(_statistics) if hidden_ME.is_cuda else _statistics
            logp_M[at], entropy_M[at], lse_M[at] = found(logits_CV, targets_M[at])
        ctx.save_for_backward(hidden_ME, head_VE, targets_M, lse_M, entropy_M)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)
        return logp_M, entropy_M

    @staticmethod
    def backward(
        ctx: Any, grad_logp_M: Tensor | None, grad_entropy_M: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        hidden_ME, head_VE, targets_M, lse_M, entropy_M = ctx.saved_tensors
        for_hidden, for_head, *_ = ctx.needs_input_grad
        grad_hidden_ME = torch.empty_like(hidden_ME) if for_hidden else None
        grad_head_VE = torch.zeros_like(head_VE, dtype=lse_M.dtype) if for_head else None
        pull_M = torch.zeros_like(lse_M) if grad_logp_M is None else grad_logp_M / ctx.temperature
        for start in range(0, len(hidden_ME), ctx.rows):
            at = slice(start, start + ctx.rows)
            logits_CV = wide_logits(hidden_ME[at], head_VE, ctx.temperature)
            if hidden_ME.is_cuda and grad_entropy_M is None:
                pulled = _fused(logit_gradients)
                grad_CV = pulled(logits_CV, targets_M[at], lse_M[at], pull_M[at], hidden_ME.dtype)
            else:
                logs_CV = logits_CV.sub_(lse_M[at, None])
                if grad_entropy_M is None:
                    grad_CV = logs_CV.exp_().mul_(pull_M[at, None])
                else:
                    probs_CV = logs_CV.exp()
                    spread_C1 = grad_entropy_M[at, None] / ctx.temperature
                    grad_CV = logs_CV.add_(entropy_M[at, None]).mul_(spread_C1).add_(pull_M[at, None]).mul_(probs_CV)
                grad_CV.neg_().scatter_add_(1, targets_M[at, None], pull_M[at, None])
                grad_CV = grad_CV.to(hidden_ME.dtype)
            if grad_hidden_ME is not None:
                grad_hidden_ME[at] = grad_CV @ head_VE
            if grad_head_VE is not None:
                add_product(grad_head_VE, grad_CV.t(), hidden_ME[at])
        return grad_hidden_ME, None if grad_head_VE is None else grad_head_VE.to(head_VE.dtype), None, None, None


@cache
def _fused(function: Any) -> Any:
    return torch.compile(function, dynamic=False)


def _statistics(logits_CV: Tensor, targets_C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The log-prob of the target, the entropy, and the log-sum-exp."""
    chosen_C = logits_CV.gather(1, targets_C[:, None])[:, 0]
    logs_CV = torch.log_softmax(logits_CV, -1)
    logp_C = logs_CV.gather(1, targets_C[:, None])[:, 0]
    return logp_C, -logs_CV.exp().mul_(logs_CV).sum(-1), chosen_C - logp_C


def logit_gradients(logits_CV: Tensor, targets_C: Tensor, lse_C: Tensor, pull_C: Tensor, dtype: torch.dtype) -> Tensor:
    """Of the log-probs of targets, each times its `pull`."""
    probs_CV = (logits_CV - lse_C[:, None]).exp()
    is_target_CV = torch.arange(logits_CV.shape[1], device=logits_CV.device) == targets_C[:, None]
    return ((is_target_CV.to(probs_CV.dtype) - probs_CV) * pull_C[:, None]).to(dtype)


def wide_logits(hidden_CE: Tensor, head_VE: Tensor, temperature: float) -> Tensor:
    """In float32 or better; factors of 16 bits are summed in float32, and the sums are not rounded."""
    wide = torch.promote_types(hidden_CE.dtype, torch.float32)
    if hidden_CE.dtype == wide:
        logits_CV = hidden_CE @ head_VE.t()
    elif hidden_CE.is_cuda:
        logits_CV = torch.mm(hidden_CE, head_VE.t(), out_dtype=wide)
    else:
        logits_CV = hidden_CE.to(wide) @ head_VE.to(wide).t()
    return logits_CV if temperature == 1.0 else logits_CV.div_(temperature)


def add_product(total_VE: Tensor, left_VC: Tensor, right_CE: Tensor) -> None:
    if total_VE.dtype == left_VC.dtype:
        total_VE.addmm_(left_VC, right_CE)
    else:
        total_VE.add_(left_VC @ right_CE)
