"""Which networks the engine runs itself: decoders of the Llama family, described by a few numbers."""

from dataclasses import dataclass
from typing import Any

_PLAIN_ROPE = frozenset({"default", "linear", "llama3", "yarn"})
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
    return config.hidden_act == "silu" and config.rope_parameters["rope_type"] in _PLAIN_ROPE and not windowed
