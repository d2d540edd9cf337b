"""One optimiser for a network: AdamW for all of it, or Muon for the matrices between its layers and AdamW for the rest.

Its state is tensors named after the network's parameters, so that it is saved beside the weights without pickle.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from gametape.core.config import OptimizerName
from gametape.core.errors import BadInput
from gametape.train.optim.muon import Muon


class Optimizer:
    """Steps all parameters that have a gradient. Made by `make_optimizer`."""

    def __init__(self, parts: list[torch.optim.Optimizer], names: Mapping[Tensor, str], learning_rate: float) -> None:
        self._parts = parts
        self._names = names
        self._learning_rate = learning_rate

    def step(self, factor: float = 1.0) -> None:
        """Update with `factor` times the learning rate."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = factor * self._learning_rate
            part.step()

    def clear(self) -> None:
        """Forget the gradients."""
        for part in self._parts:
            part.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The state, which later steps go on to change."""
        return {
            f"{self._names[param]}.{key}": tensor
            for part, param in self._params()
            for key, tensor in part.state.get(param, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a state that `tensors` gave: the next steps are the same to the bit."""
        states: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            param_name, _, key = name.rpartition(".")
            states.setdefault(param_name, {})[key] = tensor
        strangers = states.keys() - self._names.values()
        if strangers:
            raise BadInput(f"the optimiser's state is for another network: it has no {min(strangers)}")
        for part, param in self._params():
            state = states.get(self._names[param], {})
            for key, tensor in state.items():
                if tensor.dim() and tensor.shape != param.shape:
                    shapes = f"{list(tensor.shape)}, not {list(param.shape)}"
                    raise BadInput(f"the optimiser's {self._names[param]}.{key} is {shapes}")
            # Counts of steps have no dimension and stay on the host, where torch keeps them.
            part.state[param] = {
                key: tensor.clone().to(param.device if tensor.dim() else tensor.device) for key, tensor in state.items()
            }

    def _params(self) -> Iterator[tuple[torch.optim.Optimizer, Tensor]]:
        for part in self._parts:
            for group in part.param_groups:
                for param in group["params"]:
                    yield part, param


def make_optimizer(
    network: nn.Module,
    method: OptimizerName = "adamw",
    learning_rate: float = 3e-4,
    weight_decay: float = 0.0,
) -> Optimizer:
    """For a `transformers` network's parameters that take a gradient. Vectors, as in norms and biases, do not decay."""
    names = {param: name for name, param in network.named_parameters() if param.requires_grad}
    hidden = _hidden_matrices(network) if method == "muon" else set()
    matrices = [param for param in names if param in hidden]
    others = [param for param in names if param not in hidden]
    groups = [
        {"params": [param for param in others if param.dim() > 1], "weight_decay": weight_decay},
        {"params": [param for param in others if param.dim() < 2], "weight_decay": 0.0},
    ]
    parts = [torch.optim.AdamW(groups, lr=learning_rate)]
    if matrices:
        parts.append(Muon(matrices, lr=learning_rate, weight_decay=weight_decay))
    return Optimizer(parts, names, learning_rate)


def _hidden_matrices(network: nn.Module) -> set[Tensor]:
    """The weights of linear layers, but for the one that gives logits: its rows are tokens, as an embedding's are."""
    head = network.get_output_embeddings()
    return {module.weight for module in network.modules() if isinstance(module, nn.Linear) and module is not head}


Schedule = Literal["constant", "linear", "cosine"]


def schedule_factor(schedule: Schedule, spent: float) -> float:
    """What to multiply the learning rate by when this share of the budget is used up: it stays (`constant`), or falls
    to nothing in a line or along half a cosine."""
    if schedule == "constant":
        return 1.0
    share = min(1.0, spent)
    return 1 - (share if schedule == "linear" else (1 - math.cos(math.pi * share)) / 2)


def warmup_factor(step: int, warmup: int) -> float:
    """The factor besides: it rises in a line over the first `warmup` updates, which all do something."""
    return min(1.0, (step + 1) / (warmup + 1))
