"""Low-rank adapters (LoRA) on the linear layers of a decoder, in the files of peft: the weights of the model stay as
they are, and products of two thin matrices are learned beside them.

Without its adapters the policy is the one that the run began with, at no cost; with a second set of them, which follows
slowly, it is a slow average of itself.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gametape.core.errors import BadInput
from gametape.train.shards import as_sharded, whole

Used = Literal["current", "none", "slow"]
_PREFIX = "base_model.model."
"""Before every name in a file of peft."""


class Adapters:
    """All adapters of a network."""

    def __init__(self, network: Any, rank: int, alpha: float, seed: int = 0) -> None:
        """Put them on the linear layers of all decoder layers; nothing else of the network learns from now on."""
        self.network, self.rank, self.alpha = network, rank, alpha
        self.used: Used = "current"
        network.requires_grad_(False)
        random = torch.Generator().manual_seed(seed)
        names = set(network._no_split_modules or ())
        for layer in [part for part in network.modules() if type(part).__name__ in names]:
            for parent in list(layer.modules()):
                for name, child in list(parent.named_children()):
                    if isinstance(child, nn.Linear) and not isinstance(parent, AdaptedLinear):
                        setattr(parent, name, AdaptedLinear(child, self, random))
        if not self._layers():
            raise BadInput(f"lora: networks of type {network.config.model_type} have no linear layers to adapt")

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    @contextmanager
    def using(self, which: Used) -> Iterator[None]:
        before, self.used = self.used, which
        try:
            yield
        finally:
            self.used = before

    def add_slow(self) -> None:
        """A second set, equal to the first."""
        for layer in self._layers().values():
            layer.add_slow()

    def follow(self, share: float) -> None:
        """Move the second set by this share of its distance to the first."""
        with torch.no_grad():
            for layer in self._layers().values():
                layer.slow_A.weight.lerp_(layer.lora_A.weight, share)
                layer.slow_B.weight.lerp_(layer.lora_B.weight, share)

    def merged(self) -> Iterator[tuple[str, Tensor]]:
        """The network's own weights by their own names, with the adapters added to them; one after the other."""
        layers = self._layers()
        for name, tensor in self.network.state_dict().items():
            owner, _, rest = name.rpartition(".base.")
            if owner in layers:
                yield f"{owner}.{rest}", whole(tensor) + (layers[owner].delta() if rest == "weight" else 0)
            elif not any(f".{part}_{side}." in name for part in ("lora", "slow") for side in "AB"):
                yield name, whole(tensor)

    def tensors(self, which: Literal["lora", "slow"] = "lora") -> dict[str, Tensor]:
        """By the names that peft gives them, sharded as they are."""
        return {
            f"{_PREFIX}{name}.lora_{side}.weight": getattr(layer, f"{which}_{side}").weight.detach()
            for name, layer in self._layers().items()
            for side in "AB"
        }

    def load(self, tensors: Mapping[str, Tensor], which: Literal["lora", "slow"] = "lora") -> None:
        with torch.no_grad():
            for name, layer in self._layers().items():
                for side in "AB":
                    own = getattr(layer, f"{which}_{side}").weight
                    own.copy_(as_sharded(tensors[f"{_PREFIX}{name}.lora_{side}.weight"], own))

    def peft_config(self) -> str:
        """The file adapter_config.json."""
        targets = sorted({name.rpartition(".")[2] for name in self._layers()})
        return json.dumps(
            {
                "peft_type": "LORA",
                "task_type": "CAUSAL_LM",
                "r": self.rank,
                "lora_alpha": self.alpha,
                "lora_dropout": 0.0,
                "bias": "none",
                "target_modules": targets,
                "base_model_name_or_path": None,
                "inference_mode": True,
            },
            indent=2,
        )

    def _layers(self) -> "dict[str, AdaptedLinear]":
        return {name: part for name, part in self.network.named_modules() if isinstance(part, AdaptedLinear)}


class AdaptedLinear(nn.Module):  # type: ignore[misc]
    """A linear layer with an adapter beside it, which at first adds nothing."""

    def __init__(self, base: nn.Linear, adapters: Adapters, random: torch.Generator) -> None:
        super().__init__()
        self.base = base
        object.__setattr__(self, "_adapters", adapters)  # it holds the network that holds this
        self.lora_A, self.lora_B = _pair(base, adapters.rank)
        bound = 1 / math.sqrt(base.in_features)
        with torch.no_grad():
            self.lora_A.weight.uniform_(-bound, bound, generator=random)
            self.lora_B.weight.zero_()

    def forward(self, x: Tensor) -> Tensor:
        adapters: Adapters = self._adapters
        out: Tensor = self.base(x)
        if adapters.used == "none":
            return out
        slow = adapters.used == "slow"
        down, up = (self.slow_A, self.slow_B) if slow else (self.lora_A, self.lora_B)
        more: Tensor = up(down(x))
        return out + more * adapters.scale

    def add_slow(self) -> None:
        self.slow_A, self.slow_B = _pair(self.base, self._adapters.rank)
        for side in "AB":
            slow, fast = getattr(self, f"slow_{side}").weight, getattr(self, f"lora_{side}").weight
            slow.requires_grad_(False).copy_(fast.detach())

    def delta(self) -> Tensor:
        up, down = (whole(part.weight.detach()) for part in (self.lora_B, self.lora_A))
        return up @ down * float(self._adapters.scale)


def _pair(base: nn.Linear, rank: int) -> tuple[nn.Linear, nn.Linear]:
    return nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
