"""A forward pass of our own over the trainer's tensors.

The projections that read the same input are one matrix product each. There is no second copy of the weights: the fused
tensor takes the place of the parts, and the module's parameters become slices of it, so that an optimiser's step in
place is seen here at once. Moving or casting the module afterwards undoes that; `shared` says whether it still holds.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gametape.engines.torch.attention.interface import AttendFn
from gametape.engines.torch.decoder_spec import DecoderSpec
from gametape.engines.torch.elementwise import add_and_norm, apply_rotary, rms_norm, silu_gate
from gametape.engines.torch.linear import LinearOp, PackedLinear, PlainLinear, fastest_linear


@dataclass(frozen=True)
class _Layer:
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


class _Products:
    """The four matrix products of a layer."""

    def __init__(self, layer: _Layer, kind: type[PlainLinear] | type[PackedLinear]) -> None:
        self.qkv: LinearOp = kind(layer.qkv_PE, layer.qkv_bias_P)
        self.output: LinearOp = kind(layer.output_EP, layer.output_bias_E)
        self.gate_up: LinearOp = kind(layer.gate_up_PE, layer.gate_up_bias_P)
        self.down: LinearOp = kind(layer.down_EI, layer.down_bias_E)

    def refresh(self) -> None:
        for product in (self.qkv, self.output, self.gate_up, self.down):
            product.refresh()


class Decoder:
    """Packed tokens of many sequences in, hidden states out; `attend` knows which tokens belong together."""

    def __init__(self, module: Any, spec: DecoderSpec) -> None:
        """`module` is the causal language model as transformers makes it; its parameters now lie in fused tensors."""
        self.module, self.spec = module, spec
        with torch.no_grad():
            self.layers = [_layer(layer, spec) for layer in module.model.layers]
        self.embedding_VE: Tensor = module.model.embed_tokens.weight.data
        self.final_norm_E: Tensor = module.model.norm.weight.data
        self.head_VE: Tensor = module.lm_head.weight.data
        total_bytes = sum(parameter.nbytes for parameter in module.parameters())
        kind = fastest_linear(self.layers[0].gate_up_PE, total_bytes)
        self._products = [_Products(layer, kind) for layer in self.layers]
        self._head: LinearOp = kind(self.head_VE, None)
        rotary = module.model.rotary_emb
        self._frequencies_R: Tensor = torch.cat((rotary.inv_freq, rotary.inv_freq)).float()
        half = len(rotary.inv_freq)
        self._signs_D: Tensor = torch.ones_like(self._frequencies_R)
        self._signs_D[:half] = -1
        self._rope_scale = float(rotary.attention_scaling)

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
        turning = spec.heads + spec.kv_heads
        cos_N1D, sin_N1D = self.rotation(positions_N)
        hidden_NE = functional.embedding(ids_N, self.embedding_VE)
        more_NE: Tensor | None = None
        for number, (layer, products) in enumerate(zip(self.layers, self._products, strict=True)):
            normed_NE = add_and_norm(hidden_NE, more_NE, layer.before_attention_E, spec.eps)
            packed_NPD = products.qkv(normed_NE).view(len(ids_N), -1, spec.head_dim)
            qk_NPD = packed_NPD[:, :turning]
            if layer.q_norm_D is not None and layer.k_norm_D is not None:
                q_NHD = rms_norm(qk_NPD[:, : spec.heads], layer.q_norm_D, spec.eps)
                k_NGD = rms_norm(qk_NPD[:, spec.heads :], layer.k_norm_D, spec.eps)
                qk_NPD = torch.cat((q_NHD, k_NGD), 1)
            qk_NPD = apply_rotary(qk_NPD, cos_N1D, sin_N1D)
            out_NHD = attend(number, qk_NPD[:, : spec.heads], qk_NPD[:, spec.heads :], packed_NPD[:, turning:])
            more_NE = products.output(out_NHD.reshape(len(ids_N), spec.heads * spec.head_dim))
            normed_NE = add_and_norm(hidden_NE, more_NE, layer.before_mlp_E, spec.eps)
            more_NE = products.down(silu_gate(products.gate_up(normed_NE)))
        return add_and_norm(hidden_NE, more_NE, self.final_norm_E, spec.eps)

    def rotation(self, positions_N: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines, and sines signed so that a vector rolled by half its length can be multiplied with them."""
        angles_ND = positions_N.float()[:, None] * self._frequencies_R
        cos_ND = angles_ND.cos() * self._rope_scale
        sin_ND = angles_ND.sin() * (self._rope_scale * self._signs_D)
        return cos_ND[:, None].to(self.dtype), sin_ND[:, None].to(self.dtype)

    def logits(self, hidden_ME: Tensor) -> Tensor:
        """[M, V] in float32, for the rows that are needed; on a GPU never rounded to a narrower type on the way."""
        if self.device.type == "cuda" and self.dtype != torch.float32:
            logits_MV: Tensor = torch.mm(hidden_ME, self.head_VE.t(), out_dtype=torch.float32)
            return logits_MV
        return self._head(hidden_ME).float()


def _layer(layer: Any, spec: DecoderSpec) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv = (attention.q_proj, attention.k_proj, attention.v_proj)
    return _Layer(
        before_attention_E=layer.input_layernorm.weight.data,
        qkv_PE=_fused([part.weight for part in qkv]),
        qkv_bias_P=None if qkv[0].bias is None else _fused([part.bias for part in qkv]),
        q_norm_D=attention.q_norm.weight.data if spec.qk_norm else None,
        k_norm_D=attention.k_norm.weight.data if spec.qk_norm else None,
        output_EP=attention.o_proj.weight.data,
        output_bias_E=_bias(attention.o_proj),
        before_mlp_E=layer.post_attention_layernorm.weight.data,
        gate_up_PE=_fused([mlp.gate_proj.weight, mlp.up_proj.weight]),
        gate_up_bias_P=None if mlp.gate_proj.bias is None else _fused([mlp.gate_proj.bias, mlp.up_proj.bias]),
        down_EI=mlp.down_proj.weight.data,
        down_bias_E=_bias(mlp.down_proj),
    )


def _bias(linear: Any) -> Tensor | None:
    return None if linear.bias is None else linear.bias.data


def _fused(parts: list[Tensor]) -> Tensor:
    whole: Tensor = torch.cat([part.data for part in parts])
    start = 0
    for part in parts:
        part.data = whole[start : start + len(part)]
        start += len(part)
    return whole
