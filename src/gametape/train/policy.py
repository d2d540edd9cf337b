"""The policy that learns: a network, its chat format, and the files that make its weights a model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.utils.logging import disable_progress_bar

from gametape.core.config import LoraConfig, TinyConfig
from gametape.core.errors import BadInput
from gametape.core.protocols import PolicyEngine
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.token_conversation import TokenModel
from gametape.engines.tokenizers.words import MARKERS, save_word_tokenizer
from gametape.engines.torch.build import build_stepper, load_network, slow_engine
from gametape.engines.torch.device import CPU_FLOAT32, Placement
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.lockstep import LockstepEngine
from gametape.engines.torch.stepper import EngineLimits
from gametape.engines.torch.weights import match_weights
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words
from gametape.train.activity import ActivityClock
from gametape.train.lora import Adapters
from gametape.train.memory_plan import MemoryPlan
from gametape.train.shards import as_sharded, whole

_NOT_TAKEN_ALONG = ("state.json", ".index.json")
"""The ends of names: a run's own state, and what says which of several files holds a tensor, because weights are saved
in one."""
_SLOTS = 256
_KEPT = 512
"""Tokens that a rollout has room for on average; where that is not enough, some wait or are read again."""
_BUDGET = 1024
"""Tokens in one step of the sampler."""


@dataclass
class TrainablePolicy:
    """`files` lie beside the weights wherever they are saved: configuration, tokenizer, and the like."""

    network: Any
    chat_format: ChatFormat
    context_length: int
    files: dict[str, bytes]
    placement: Placement = CPU_FLOAT32
    """What its sampler uses."""
    adapters: Adapters | None = None
    """What is learned of it, where that is not all of its weights."""
    memory: MemoryPlan | None = None
    """What the run was planned to take, by which the sampler keeps as many keys and values as there is room for."""
    sampler_network: Any = None
    """The sampler's own copy, where it cannot use the tensors that are learned."""

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def weights(self) -> dict[str, Tensor]:
        """By name, as they are now and whole, each once: of tied tensors the one that `transformers` expects."""
        return dict(self.each_weight())

    def each_weight(self) -> Iterator[tuple[str, Tensor]]:
        """The same, one after the other: of a sharded policy only one is whole at a time. Every rank asks for all."""
        tied = set(getattr(self.network, "_tied_weights_keys", None) or ()) if self._ties else set()
        named = self.adapters.merged() if self.adapters else self.network.state_dict().items()
        return ((name, whole(tensor)) for name, tensor in named if name not in tied)

    def adapt(self, config: LoraConfig, seed: int) -> None:
        """Learn low-rank adapters from now on, and none of its weights, if the configuration says so."""
        if config.rank:
            self.adapters = Adapters(self.network, config.rank, config.alpha, seed)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            own = self.network.state_dict()
            for name, tensor in weights.items():
                own[name].copy_(as_sharded(tensor, own[name]))
        self.copy_to_sampler(weights)

    def sampler(self, staleness: int = 0, threaded: bool = False, clock: ActivityClock | None = None) -> TokenModel:
        """A model that samples in lockstep, or in a thread that never waits for a tool: from the very tensors that are
        learned where these are whole and of the sampler's dtype, else from a copy that `copy_to_sampler` writes."""
        limits = EngineLimits(max_sequences=_SLOTS, token_budget=_BUDGET, max_staleness=staleness)
        network = self.network
        apart = self.placement != CPU_FLOAT32 or self.adapters is not None
        if apart or any(isinstance(param, DTensor) for param in network.parameters()):
            network = self.sampler_network = self._copied_network()
        most = max(2 * self.context_length, _SLOTS * _KEPT)
        room = self.memory.kv_tokens(most, self.placement.torch_dtype.itemsize) if self.memory else most
        stepper = build_stepper(network, limits, kv_tokens=room)
        engine: PolicyEngine
        if stepper is None:
            engine = slow_engine(network, "policy")
        else:
            if clock:
                stepper.step_context = partial(clock.during, "decode")
            engine = TorchEngine(stepper) if threaded else LockstepEngine(stepper)
        return TokenModel("policy", engine, self.chat_format, self.context_length, on_close=engine.close)

    def copy_to_sampler(self, weights: Mapping[str, Tensor]) -> None:
        if self.sampler_network is not None:
            match_weights(self.sampler_network, weights).copy()

    def _copied_network(self) -> Any:
        auto: Any = AutoModelForCausalLM
        with torch.random.fork_rng(devices=[]), torch.device(self.placement.device):
            network = auto.from_config(self.network.config, dtype=self.placement.torch_dtype).requires_grad_(False)
        match_weights(network, self.weights()).copy()
        return network

    @property
    def _ties(self) -> bool:
        return bool(self.network.config.tie_word_embeddings)


def load_policy(directory: Path, placement: Placement = CPU_FLOAT32) -> TrainablePolicy:
    """From a directory that `transformers` could load, in float32 and on the CPU: the learner moves what it shards."""
    return _described(load_network(directory, torch.float32), directory, placement)


def outline_policy(directory: Path, placement: Placement) -> TrainablePolicy:
    """A policy without its weights, for a process that neither samples nor learns."""
    auto: Any = AutoModelForCausalLM
    with torch.device("meta"):
        network = auto.from_config(AutoConfig.from_pretrained(directory))
    return _described(network, directory, placement)


def _described(network: Any, directory: Path, placement: Placement) -> TrainablePolicy:
    files = {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.suffix in (".json", ".jinja", ".txt", ".model") and not path.name.endswith(_NOT_TAKEN_ALONG)
    }
    window = int(network.config.max_position_embeddings)
    return TrainablePolicy(network.eval(), load_chat_format(directory), window, files, placement)


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
