"""The engine's forward pass over the trainer's tensors.

Projections that read the same input are one matrix product each. There is no second copy of the weights: the module's
parameters become slices of the fused tensors, so that an optimiser's step in place is seen here at once. Moving or
casting the module afterwards undoes that; `shares_parameters` says whether it still holds.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gametape.engines.torch.attention.interface import AttendFn
from gametape.engines.torch.decoder_spec import DecoderLayer, DecoderSpec, RotaryEmbedding, decoder_layers
from gametape.engines.torch.elementwise import add_and_norm, apply_rotary, rms_norm, silu_gate
from gametape.engines.torch.linear import LinearOp, PackedLinear, PlainLinear, fastest_linear


@dataclass(frozen=True)
class LayerWeights:
    """The tensors of a layer; projections that read the same input are one."""

    before_attention_E: Tensor
    qkv_PE: Tensor
    qkv_bias_P: Tensor | None
    q_norm_D: Tensor | None
    k_norm_D: Tensor | None
    output_EP: Tensor
    output_bias_E: Tensor | None
    before_mlp_E: Tensor
    gate_up_PE: Tensor
    gate_up_bias_P: Tensor | None
    down_EI: Tensor
    down_bias_E: Tensor | None


class _LayerProducts:
    """The four matrix products of a layer."""

    def __init__(self, layer: LayerWeights, kind: type[PlainLinear] | type[PackedLinear]) -> None:
        self.qkv: LinearOp = kind(layer.qkv_PE, layer.qkv_bias_P)
        self.output: LinearOp = kind(layer.output_EP, layer.output_bias_E)
        self.gate_up: LinearOp = kind(layer.gate_up_PE, layer.gate_up_bias_P)
        self.down: LinearOp = kind(layer.down_EI, layer.down_bias_E)

    def refresh(self) -> None:
        for product in (self.qkv, self.output, self.gate_up, self.down):
            product.refresh()


class Decoder:
    """Maps packed tokens of many sequences to hidden states; `attend` knows which tokens belong together."""

    def __init__(self, module: Any, spec: DecoderSpec) -> None:
        """`module` is a causal language model of transformers; its parameters become slices of fused tensors."""
        self.module, self.spec = module, spec
        with torch.no_grad():
            self.layers = [_fuse_layer(layer) for layer in decoder_layers(module, spec)]
        self.embedding_VE: Tensor = module.model.embed_tokens.weight.data
        self.final_norm_E: Tensor = module.model.norm.weight.data
        self.head_VE: Tensor = module.lm_head.weight.data
        total_bytes = sum(parameter.nbytes for parameter in module.parameters())
        kind = fastest_linear(self.layers[0].gate_up_PE, total_bytes)
        self._products = [_LayerProducts(layer, kind) for layer in self.layers]
        self._head: LinearOp = kind(self.head_VE, None)
        self.rotary = RotaryEmbedding(module)

    @property
    def device(self) -> torch.device:
        device: torch.device = self.embedding_VE.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.embedding_VE.dtype
        return dtype

    @property
    def shares_parameters(self) -> bool:
        """Whether the module's parameters are still the tensors that this reads."""
        first = self.module.model.layers[0]
        return bool(
            first.self_attn.q_proj.weight.data_ptr() == self.layers[0].qkv_PE.data_ptr()
            and self.module.lm_head.weight.data_ptr() == self.head_VE.data_ptr()
        )

    def refresh(self) -> None:
        """The weights have changed in place."""
        if not self.shares_parameters:
            raise RuntimeError("the module was moved or cast after its engine was made: make a new engine")
        for products in self._products:
            products.refresh()
        self._head.refresh()

    def forward(self, ids_N: Tensor, positions_N: Tensor, attend: AttendFn) -> Tensor:
        """Hidden states [N, E] after the last norm."""
        spec = self.spec
        rotated = spec.heads + spec.kv_heads
        cos_N1D, sin_N1D = self.rotary(positions_N, self.dtype)
        hidden_NE = functional.embedding(ids_N, self.embedding_VE)
        more_NE: Tensor | None = None
        for number, (layer, products) in enumerate(zip(self.layers, self._products, strict=True)):
            normed_NE = add_and_norm(hidden_NE, more_NE, layer.before_attention_E, spec.eps)
            packed_NPD = products.qkv(normed_NE).view(len(ids_N), -1, spec.head_dim)
            qk_NPD = packed_NPD[:, :rotated]
            if layer.q_norm_D is not None and layer.k_norm_D is not None:
                q_NHD = rms_norm(qk_NPD[:, : spec.heads], layer.q_norm_D, spec.eps)
                k_NGD = rms_norm(qk_NPD[:, spec.heads :], layer.k_norm_D, spec.eps)
                qk_NPD = torch.cat((q_NHD, k_NGD), 1)
            qk_NPD = apply_rotary(qk_NPD, cos_N1D, sin_N1D)
            out_NHD = attend(number, qk_NPD[:, : spec.heads], qk_NPD[:, spec.heads :], packed_NPD[:, rotated:])
            more_NE = products.output(out_NHD.reshape(len(ids_N), spec.heads * spec.head_dim))
            normed_NE = add_and_norm(hidden_NE, more_NE, layer.before_mlp_E, spec.eps)
            more_NE = products.down(silu_gate(products.gate_up(normed_NE)))
        return add_and_norm(hidden_NE, more_NE, self.final_norm_E, spec.eps)

    def logits(self, hidden_ME: Tensor) -> Tensor:
        """[M, V] in float32; on a GPU never rounded to a narrower type on the way."""
        if self.device.type == "cuda" and self.dtype != torch.float32:
            logits_MV: Tensor = torch.mm(hidden_ME, self.head_VE.t(), out_dtype=torch.float32)
            return logits_MV
        return self._head(hidden_ME).float()


def _fuse_layer(layer: DecoderLayer) -> LayerWeights:
    qkv, gate_up = (layer.query, layer.key, layer.value), (layer.gate, layer.up)
    return LayerWeights(
        before_attention_E=layer.attention_norm.weight.data,
        qkv_PE=_fuse([part.weight for part in qkv]),
        qkv_bias_P=None if layer.query.bias is None else _fuse([part.bias for part in qkv]),
        q_norm_D=None if layer.query_norm is None else layer.query_norm.weight.data,
        k_norm_D=None if layer.key_norm is None else layer.key_norm.weight.data,
        output_EP=layer.output.weight.data,
        output_bias_E=_bias(layer.output),
        before_mlp_E=layer.mlp_norm.weight.data,
        gate_up_PE=_fuse([part.weight for part in gate_up]),
        gate_up_bias_P=None if layer.gate.bias is None else _fuse([part.bias for part in gate_up]),
        down_EI=layer.down.weight.data,
        down_bias_E=_bias(layer.down),
    )


def _bias(linear: Any) -> Tensor | None:
    return None if linear.bias is None else linear.bias.data


def _fuse(parts: list[Tensor]) -> Tensor:
    whole: Tensor = torch.cat([part.data for part in parts])
    start = 0
    for part in parts:
        part.data = whole[start : start + len(part)]
        start += len(part)
    return whole
