"""The policy that learns: a network, its chat format, and the files that make its weights a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils.logging import disable_progress_bar

from gametape.core.config import TinyConfig
from gametape.core.errors import BadInput
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.token_conversation import TokenModel
from gametape.engines.tokenizers.words import MARKERS, save_word_tokenizer
from gametape.engines.torch.build import build_stepper, load_network
from gametape.engines.torch.lockstep import LockstepEngine
from gametape.engines.torch.stepper import EngineLimits
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words

_NOT_TAKEN_ALONG = {"state.json"}
_SLOTS = 256
_KEPT = 512
"""Tokens that a rollout has room for on average; where that is not enough, some wait or are read again."""
_BUDGET = 1024
"""Tokens in one step of the sampler."""


@dataclass(frozen=True)
class TrainablePolicy:
    """`files` lie beside the weights wherever they are saved: configuration, tokenizer, and the like."""

    network: Any
    chat_format: ChatFormat
    context_length: int
    files: dict[str, bytes]

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def weights(self) -> dict[str, Tensor]:
        """By name, as they are now, each once: of tied tensors the one that `transformers` expects."""
        tied = set(getattr(self.network, "_tied_weights_keys", None) or ()) if self._ties else set()
        return {name: tensor for name, tensor in self.network.state_dict().items() if name not in tied}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            own = self.network.state_dict()
            for name, tensor in weights.items():
                own[name].copy_(tensor)

    def sampler(self, staleness: int = 0) -> TokenModel:
        """A model that samples from these very tensors."""
        limits = EngineLimits(max_sequences=_SLOTS, token_budget=_BUDGET, max_staleness=staleness)
        stepper = build_stepper(self.network, limits, kv_tokens=max(2 * self.context_length, _SLOTS * _KEPT))
        if stepper is None:
            raise BadInput(f"networks of type {self.network.config.model_type} cannot be trained here")
        engine = LockstepEngine(stepper)
        return TokenModel("policy", engine, self.chat_format, self.context_length, on_close=engine.close)

    @property
    def _ties(self) -> bool:
        return bool(self.network.config.tie_word_embeddings)


def load_policy(directory: Path) -> TrainablePolicy:
    """From a directory that `transformers` could load."""
    network = load_network(directory, torch.float32)
    files = {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.suffix in (".json", ".jinja", ".txt", ".model") and path.name not in _NOT_TAKEN_ALONG
    }
    window = int(network.config.max_position_embeddings)
    return TrainablePolicy(network.eval(), load_chat_format(directory), window, files)


@dataclass(frozen=True)
class WordLanguage:
    """The words that a tiny policy knows, a token each, and the arguments of each tool in their order."""

    words: Sequence[str]
    signatures: Mapping[str, Sequence[str]]


def create_tiny_policy(directory: Path, shape: TinyConfig, seed: int, language: WordLanguage | None = None) -> None:
    """Write a new small Llama with random weights, which knows the words of worlds unless given others."""
    if shape.width % (2 * shape.heads):
        raise BadInput(f"tiny.width: a multiple of twice tiny.heads ({shape.heads}), not {shape.width}")
    language = language or WordLanguage(vocabulary_words(), tool_signatures())
    save_word_tokenizer(directory, language.words, language.signatures)
    chat_format = load_chat_format(directory)
    config = LlamaConfig(
        vocab_size=-(-(len(language.words) + 1 + len(MARKERS)) // 16) * 16,
        hidden_size=shape.width,
        intermediate_size=3 * shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.window,
        tie_word_embeddings=True,
        initializer_range=shape.width**-0.5,  # at the usual 0.02 so narrow a network takes ten times as long to copy
        bos_token_id=None,
        eos_token_id=chat_format.stop_ids[0],
    )
    disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(directory)
