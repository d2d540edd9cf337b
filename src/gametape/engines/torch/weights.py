"""Loads new weights, from files or tensors, into a network in place."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gametape.core.errors import BadInput
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.stepper import Stepper

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class WeightCopy:
    """Pairs of a network's tensor and the one to copy into it."""

    pairs: list[tuple[Tensor, Tensor]]

    def copy(self) -> None:
        with torch.no_grad():
            for own, new in self.pairs:
                own.copy_(new)


def load_weights(directory: Path) -> Weights:
    """All tensors of a model's safetensors files in a directory, in one file or in several. What else lies there, such
    as an optimiser's state, is no weights."""
    try:
        files = sorted(directory.glob("model*.safetensors"))
        weights = {name: tensor for path in files for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{directory}: weights cannot be read: {error}") from None
    if not weights:
        raise BadInput(f"{directory} has no model.safetensors in it")
    return weights


def match_weights(module: Any, weights: Weights) -> WeightCopy:
    """Raises `BadInput` for weights of another network. Of two names for one tensor (tied embeddings) one is enough."""
    own: dict[str, Tensor] = module.state_dict()
    given = {own[name].data_ptr() for name in weights if name in own}
    missing = [name for name, tensor in own.items() if name not in weights and tensor.data_ptr() not in given]
    unknown = [name for name, tensor in weights.items() if name not in own or own[name].shape != tensor.shape]
    if missing or unknown:
        raise BadInput(f"these are weights of another model: see {(missing + unknown)[0]}")
    return WeightCopy([(own[name], tensor) for name, tensor in weights.items()])


class StandbyWeights:
    """A second set of weights, written while the first decodes; both belong to the engine alone."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._spare = Decoder(deepcopy(stepper.decoder.module), stepper.decoder.spec)

    def write(self, weights: Weights) -> None:
        """Write all of the weights, or none if they do not fit. Not while `swap` runs."""
        match_weights(self._spare.module, weights).copy()
        self._spare.refresh()

    def swap(self, version: int) -> None:
        """Decode with the written weights from now on.

        The two sets are exchanged; CUDA graphs contain the addresses of the first, so there the second is copied.
        """
        live = self._stepper.decoder
        if self._stepper.uses_graphs:
            with torch.no_grad():
                torch._foreach_copy_(list(live.module.parameters()), list(self._spare.module.parameters()))
            self._stepper.weights_changed(version)
        else:
            self._stepper.weights_changed(version, self._spare)
            self._spare = live
