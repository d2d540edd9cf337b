"""The training forward over packed trees, with the parameters of a transformers module and nothing beside them, and the
log-probs of chosen tokens without the logits of all rows.

Decoders of the Llama family run here layer by layer, with attention along the tree. Other families go through their own
forward, one padded line per node. Gradient checkpointing is the module's own setting (`gradient_checkpointing_enable`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from gametape.core.errors import BadInput
from gametape.engines.torch.decoder_spec import (
    DecoderLayer,
    DecoderSpec,
    RotaryEmbedding,
    decoder_layers,
    read_decoder_spec,
)
from gametape.train.packing import AttentionPlan, PackedTokens
from gametape.train.tree_attention import tree_attention


def rms_norm(x: Tensor, weight_E: Tensor, eps: float) -> Tensor:
    """x over its root mean square along the last dimension, times the weight; in float32 or better inside."""
    if x.is_cuda:  # one kernel there, as lean as this
        return functional.rms_norm(x, weight_E.shape, weight_E, eps)
    normed: Tensor = _RmsNorm.apply(x, weight_E, eps)
    return normed


def silu_gate(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    product: Tensor = _SiluGate.apply(gate, up)
    return product


class _RmsNorm(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_E: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight_E, scale)
        return (wide * scale).to(x.dtype) * weight_E

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_E, scale = ctx.saved_tensors
        normed = x.to(scale.dtype) * scale
        inner = (grad * weight_E).to(scale.dtype)
        along = torch.linalg.vecdot(inner, normed)[..., None] / x.shape[-1]
        grad_x = torch.addcmul(inner, normed, along, value=-1).mul_(scale)
        grad_weight = normed.mul_(grad).flatten(0, -2).sum(0)
        return grad_x.to(x.dtype), grad_weight.to(weight_E.dtype), None


class _SiluGate(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        grad_up = functional.silu(gate).mul_(grad)
        grad_gate: Tensor = torch.ops.aten.silu_backward(grad * up, gate)
        return grad_gate, grad_up


_Pair = tuple[Tensor, Tensor]


def forward(network: Any, packed: PackedTokens) -> Tensor:
    """Hidden states [N, E] after the last norm, in the order of the packed rows; detached rows have no gradient."""
    spec = read_decoder_spec(network.config)
    return _forward_by_sequences(network, packed) if spec is None else _by_tree(network, spec, packed)


def head_of(network: Any) -> Tensor:
    """The matrix [V, E] that makes logits of hidden states, where that is all a network does to them."""
    head, config = network.get_output_embeddings(), network.config
    scales = [getattr(config, name, None) for name in ("logit_scale", "logits_scaling")]
    capped = getattr(config, "final_logit_softcapping", None) is not None
    if head is None or head.bias is not None or capped or any(scale not in {None, 1.0} for scale in scales):
        raise BadInput(f"cannot train {config.model_type}: its logits are not a plain product with its last layer")
    weight_VE: Tensor = head.weight
    return weight_VE


def _by_tree(network: Any, spec: DecoderSpec, packed: PackedTokens) -> Tensor:
    """Detached rows follow the others through each layer, reading their keys and values."""
    body, live = network.model, packed.gradient_rows
    cos_N1D, sin_N1D = RotaryEmbedding(network)(packed.positions_N, body.norm.weight.dtype)
    turn, detached_turn = (cos_N1D[:live], sin_N1D[:live]), (cos_N1D[live:], sin_N1D[live:])
    saving = network.is_gradient_checkpointing and torch.is_grad_enabled()
    hidden_NE = body.embed_tokens(packed.ids_N[:live])
    with torch.no_grad():
        detached_NE = body.embed_tokens(packed.ids_N[live:])
    for layer in decoder_layers(network, spec):
        if saving:
            hidden_NE, seen = checkpoint(
                _layer, layer, spec, hidden_NE, turn, packed.plan, use_reentrant=False, preserve_rng_state=False
            )
        else:
            hidden_NE, seen = _layer(layer, spec, hidden_NE, turn, packed.plan)
        if live < len(packed.ids_N):
            with torch.no_grad():
                detached_NE, _ = _layer(layer, spec, detached_NE, detached_turn, packed.detached_plan, seen)
    normed_NE = _norm(hidden_NE, body.norm)
    with torch.no_grad():
        detached_NE = _norm(detached_NE, body.norm)
    return torch.cat((normed_NE, detached_NE))


def _layer(
    layer: DecoderLayer,
    spec: DecoderSpec,
    hidden_NE: Tensor,
    turn: _Pair,
    plan: AttentionPlan,
    seen: _Pair | None = None,
) -> tuple[Tensor, _Pair]:
    """The next hidden states, and the keys and values of these rows; `seen` are those of the rows before them."""
    normed_NE = _norm(hidden_NE, layer.attention_norm)
    q_NHD = layer.query(normed_NE).view(-1, spec.heads, spec.head_dim)
    k_NGD = layer.key(normed_NE).view(-1, spec.kv_heads, spec.head_dim)
    v_NGD = layer.value(normed_NE).view(-1, spec.kv_heads, spec.head_dim)
    if spec.qk_norm:
        q_NHD, k_NGD = _norm(q_NHD, layer.query_norm), _norm(k_NGD, layer.key_norm)
    q_NHD, k_NGD = _turned(q_NHD, turn), _turned(k_NGD, turn)
    keys_values = (k_NGD, v_NGD)
    if seen is not None:
        k_NGD, v_NGD = torch.cat((seen[0], k_NGD)), torch.cat((seen[1], v_NGD))
    hidden_NE = hidden_NE + layer.output(tree_attention(q_NHD, k_NGD, v_NGD, plan).flatten(1))
    normed_NE = _norm(hidden_NE, layer.mlp_norm)
    hidden_NE = hidden_NE + layer.down(silu_gate(layer.gate(normed_NE), layer.up(normed_NE)))
    return hidden_NE, keys_values


def _norm(x: Tensor, norm: Any) -> Tensor:
    return rms_norm(x, norm.weight, norm.variance_epsilon)


def _turned(x_NHD: Tensor, turn: _Pair) -> Tensor:
    cos_N1D, sin_N1D = turn
    return torch.addcmul(x_NHD * cos_N1D, x_NHD.roll(x_NHD.shape[-1] // 2, -1), sin_N1D)


def _forward_by_sequences(network: Any, packed: PackedTokens) -> Tensor:
    """Each node's whole sequence through the module's own forward; shared prefixes are computed for each of them."""
    detached = [rows.start >= packed.gradient_rows for rows in packed.rows]
    hidden_NE: Tensor | None = None
    for without_gradient in (False, True):
        numbers = [number for number, is_detached in enumerate(detached) if is_detached == without_gradient]
        if not numbers:
            continue
        with torch.set_grad_enabled(torch.is_grad_enabled() and not without_gradient):
            part_NE = _forward_padded(network, packed, numbers)
        hidden_NE = part_NE if hidden_NE is None else torch.cat((hidden_NE, part_NE))
    assert hidden_NE is not None
    return hidden_NE


def _forward_padded(network: Any, packed: PackedTokens, numbers: list[int]) -> Tensor:
    sequences = [packed.ids_N[packed.paths[number]] for number in numbers]
    mask_BT = pad_sequence([torch.ones_like(ids) for ids in sequences], batch_first=True)
    out = network.base_model(pad_sequence(sequences, batch_first=True), attention_mask=mask_BT, use_cache=False)
    parts = []
    for hidden_TE, ids, number in zip(out.last_hidden_state, sequences, numbers, strict=True):
        rows = packed.rows[number]
        parts.append(hidden_TE[len(ids) - (rows.stop - rows.start) : len(ids)])
    return torch.cat(parts)


_LOGITS_AT_A_TIME = {"cpu": 1 << 23, "cuda": 1 << 26}
"""How many logits make a chunk where the caller does not say: 32 and 256 MB in float32."""


def token_logprobs(
    hidden_ME: Tensor, head_VE: Tensor, targets_M: Tensor, temperature: float = 1.0, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """The log-prob of each target, and the entropy of each distribution, both [M] in float32 or better.

    `chunk` is the number of rows whose logits exist at a time. Differentiable in `hidden_ME` and `head_VE`.
    """
    rows = chunk or max(1, _LOGITS_AT_A_TIME[hidden_ME.device.type] // len(head_VE))
    logp_M, entropy_M = _TokenLogprobs.apply(hidden_ME, head_VE, targets_M, temperature, rows)
    return logp_M, entropy_M


def span_logits(hidden_SE: Tensor, head_VE: Tensor, temperature: float = 1.0) -> Tensor:
    """All logits [S, V] of a span short enough to have them, in float32 or better."""
    return _logits(hidden_SE, head_VE, temperature)


class _TokenLogprobs(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, hidden_ME: Tensor, head_VE: Tensor, targets_M: Tensor, temperature: float, rows: int
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden_ME.dtype, torch.float32)
        logp_M, entropy_M, lse_M = (hidden_ME.new_empty(len(hidden_ME), dtype=wide) for _ in range(3))
        for start in range(0, len(hidden_ME), rows):
            at = slice(start, start + rows)
            logs_CV = _logits(hidden_ME[at], head_VE, temperature)
            chosen_C = logs_CV.gather(1, targets_M[at, None])[:, 0]
            logs_CV = torch.log_softmax(logs_CV, -1)
            logp_M[at] = logs_CV.gather(1, targets_M[at, None])[:, 0]
            lse_M[at] = chosen_C - logp_M[at]
            entropy_M[at] = -logs_CV.exp().mul_(logs_CV).sum(-1)
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
            logs_CV = _logits(hidden_ME[at], head_VE, ctx.temperature).sub_(lse_M[at, None])
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
                _add_product(grad_head_VE, grad_CV.t(), hidden_ME[at])
        return grad_hidden_ME, None if grad_head_VE is None else grad_head_VE.to(head_VE.dtype), None, None, None


def _logits(hidden_CE: Tensor, head_VE: Tensor, temperature: float) -> Tensor:
    logits_CV = hidden_CE @ head_VE.t()
    wide_CV = logits_CV.to(torch.promote_types(logits_CV.dtype, torch.float32))
    return wide_CV if temperature == 1.0 else wide_CV / temperature


def _add_product(total_VE: Tensor, left_VC: Tensor, right_CE: Tensor) -> None:
    if total_VE.dtype == left_VC.dtype:
        total_VE.addmm_(left_VC, right_CE)
    else:
        total_VE.add_(left_VC @ right_CE)
