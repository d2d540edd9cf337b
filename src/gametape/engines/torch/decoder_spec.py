"""The description of decoders of the Llama family, which the engine and the trainer share: shape, layers, positions."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

_FIXED_ROPE = frozenset({"default", "linear", "llama3", "yarn"})
"""Kinds of rotary embedding whose frequencies do not change with the length of the sequence."""


@dataclass(frozen=True)
class DecoderSpec:
    """The shape of a decoder: pre-norm, rotary positions, grouped-query attention, gated SiLU, no window."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocabulary: int
    eps: float
    qk_norm: bool
    """Whether queries and keys are normalised per head, as in Qwen3."""


def read_decoder_spec(config: Any) -> DecoderSpec | None:
    """The shape that a transformers config describes; None where the family is another."""
    if config.model_type not in {"llama", "mistral", "qwen2", "qwen3"} or not _is_supported(config):
        return None
    return DecoderSpec(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        eps=config.rms_norm_eps,
        qk_norm=config.model_type == "qwen3",
    )


def _is_supported(config: Any) -> bool:
    kinds = getattr(config, "layer_types", None)
    windowed = "sliding_attention" in kinds if kinds else bool(getattr(config, "sliding_window", None))
    return config.hidden_act == "silu" and config.rope_parameters["rope_type"] in _FIXED_ROPE and not windowed


class DecoderLayer(NamedTuple):
    """The modules of one layer, in the order of the forward pass; the norms of queries and keys where there are any."""

    attention_norm: Any
    query: Any
    key: Any
    value: Any
    query_norm: Any | None
    key_norm: Any | None
    output: Any
    mlp_norm: Any
    gate: Any
    up: Any
    down: Any


def decoder_layers(network: Any, spec: DecoderSpec) -> list[DecoderLayer]:
    """The layers of a causal language model of transformers."""
    return [
        DecoderLayer(
            attention_norm=layer.input_layernorm,
            query=layer.self_attn.q_proj,
            key=layer.self_attn.k_proj,
            value=layer.self_attn.v_proj,
            query_norm=layer.self_attn.q_norm if spec.qk_norm else None,
            key_norm=layer.self_attn.k_norm if spec.qk_norm else None,
            output=layer.self_attn.o_proj,
            mlp_norm=layer.post_attention_layernorm,
            gate=layer.mlp.gate_proj,
            up=layer.mlp.up_proj,
            down=layer.mlp.down_proj,
        )
        for layer in network.model.layers
    ]


class RotaryEmbedding:
    """The rotary positions of a network, with its own frequencies."""

    def __init__(self, network: Any) -> None:
        rotary = network.model.rotary_emb
        self._frequencies_D: Tensor = torch.cat((rotary.inv_freq, rotary.inv_freq)).float()
        self._signs_D: Tensor = torch.ones_like(self._frequencies_D)
        self._signs_D[: len(rotary.inv_freq)] = -1
        self._scale = float(rotary.attention_scaling)

    def __call__(self, positions_N: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """[N, 1, D]: cosines, and sines signed so that a vector rolled by half its length is multiplied with them."""
        angles_ND = positions_N.float()[:, None] * self._frequencies_D
        cos_ND = angles_ND.cos() * self._scale
        sin_ND = angles_ND.sin() * (self._scale * self._signs_D)
        return cos_ND[:, None].to(dtype), sin_ND[:, None].to(dtype)
