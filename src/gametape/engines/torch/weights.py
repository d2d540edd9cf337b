"""New weights from files or tensors, for a network that stays where it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gametape.core.errors import BadInput

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Pairs:
    """Each tensor of a network beside the one that takes its place."""

    each: list[tuple[Tensor, Tensor]]

    def copy(self) -> None:
        with torch.no_grad():
            for own, new in self.each:
                own.copy_(new)


def load(directory: Path) -> Weights:
    """All tensors of the safetensors files in a directory."""
    try:
        files = sorted(directory.glob("*.safetensors"))
        weights = {name: tensor for path in files for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{directory}: weights cannot be read: {error}") from None
    if not weights:
        raise BadInput(f"{directory} has no safetensors files in it")
    return weights


def fitting(module: Any, weights: Weights) -> Pairs:
    """Refuses weights of another network. Of two names for one tensor (tied embeddings) one is enough."""
    own: dict[str, Tensor] = module.state_dict()
    given = {own[name].data_ptr() for name in weights if name in own}
    missing = [name for name, tensor in own.items() if name not in weights and tensor.data_ptr() not in given]
    odd = [name for name, tensor in weights.items() if name not in own or own[name].shape != tensor.shape]
    if missing or odd:
        raise BadInput(f"these are weights of another model: see {(missing + odd)[0]}")
    return Pairs([(own[name], tensor) for name, tensor in weights.items()])
