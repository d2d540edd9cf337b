"""Optimisers: AdamW for a whole network, or Muon for the matrices between its layers and AdamW for the rest; with the
bound on gradients and the schedules of the learning rate.

The state of an optimiser is tensors named after the network's parameters, so that it is saved beside the weights.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from gametape.core.config import OptimizerName
from gametape.core.errors import BadInput
from gametape.train.ranks import Ranks
from gametape.train.shards import as_sharded, whole

_STEPS = ((3.4445, -4.7750, 2.0315),) * 5 + ((2.0, -1.5, 0.5),) * 2
"""Odd polynomials of degree 5 for singular values: the first lift small ones fast and leave all within about a third
of 1, the last bring them there."""
_TINY = 1e-7


def orthogonalise(matrix_RC: Tensor) -> Tensor:
    """U V^T of the matrix's singular value decomposition U S V^T, close to it where values are not below 1e-3 of all.

    In the precision of the matrix. It is not lowered to 16 bits as elsewhere: not every processor multiplies those.
    """
    tall = matrix_RC.shape[0] > matrix_RC.shape[1]
    x_RC = matrix_RC.mT if tall else matrix_RC
    x_RC = x_RC / (x_RC.norm() + _TINY)
    for a, b, c in _STEPS:
        square_RR = x_RC @ x_RC.mT
        x_RC = a * x_RC + (b * square_RR + c * square_RR @ square_RR) @ x_RC
    return x_RC.mT if tall else x_RC


_MOMENTUM = 0.95
_LIKE_ADAM = 0.2
"""The root mean square of an update of AdamW, about. Scaled to it, both take the same learning rate and decay."""


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """Nesterov momentum, made orthogonal, for the matrices between a network's layers; weight decay apart from the
    gradient. All directions of an update get the same length, also those in which gradients are rarely seen."""

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        for group in self.param_groups:
            if any(param.dim() != 2 for param in group["params"]):
                raise ValueError("Muon is for matrices")

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:
        for group in self.param_groups:
            for number, param_RC in enumerate(group["params"]):
                if param_RC.grad is not None:
                    self._update(number, param_RC, group)

    def _update(self, number: int, param_RC: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param_RC]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param_RC)
        momentum_RC = state["momentum"]
        momentum_RC.lerp_(param_RC.grad, 1 - _MOMENTUM)
        direction_RC = _orthogonal_direction(param_RC.grad.lerp(momentum_RC, _MOMENTUM), number)
        param_RC.mul_(1 - group["lr"] * group["weight_decay"])
        param_RC.add_(direction_RC, alpha=-group["lr"] * _LIKE_ADAM * max(param_RC.shape) ** 0.5)


def _orthogonal_direction(nesterov_RC: Tensor, number: int) -> Tensor:
    """Of the whole matrix, however it is sharded: a shard made orthogonal by itself points elsewhere. Ranks take turns
    by the number of the matrix, and the one whose turn it is tells the others."""
    if not isinstance(nesterov_RC, DTensor):
        return orthogonalise(nesterov_RC)
    whole_RC, turn = whole(nesterov_RC), number % dist.get_world_size()
    direction_RC = orthogonalise(whole_RC).contiguous() if turn == dist.get_rank() else torch.empty_like(whole_RC)
    dist.broadcast(direction_RC, turn)
    return as_sharded(direction_RC, nesterov_RC)


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
        """The state by name, sharded as the parameters are; later steps go on to change it."""
        return {
            f"{self._names[param]}.{key}": tensor
            for part, param in self._params()
            for key, tensor in part.state.get(param, {}).items()
        }

    def room_for(self, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
        """A new state with tensors of these names. Filled in with what `tensors` gave, the next steps are the same to
        the bit."""
        states: dict[str, dict[str, torch.Size]] = {}
        for name, shape in shapes.items():
            param_name, _, key = name.rpartition(".")
            states.setdefault(param_name, {})[key] = shape
        strangers = states.keys() - self._names.values()
        if strangers:
            raise BadInput(f"the optimiser's state is for another network: it has no {min(strangers)}")
        for part, param in self._params():
            state = states.get(self._names[param], {})
            for key, shape in state.items():
                if shape and shape != param.shape:
                    wanted = f"{list(shape)}, not {list(param.shape)}"
                    raise BadInput(f"the optimiser's {self._names[param]}.{key} is {wanted}")
            # Counts of steps have no dimension; they are on the host, unless the optimiser's kernels count themselves.
            place = param.device if part.defaults.get("fused") else "cpu"
            part.state[param] = {
                key: torch.zeros_like(param, requires_grad=False) if shape else torch.zeros((), device=place)
                for key, shape in state.items()
            }
        return self.tensors()

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
    on_gpu = all(param.device.type == "cuda" for param in names)
    parts = [torch.optim.AdamW(groups, lr=learning_rate, fused=on_gpu or None)]
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


@dataclass(frozen=True)
class GradientNorm:
    """The Euclidean norm of all gradients as one vector, before anything was scaled."""

    value: float
    scaled: bool

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value)


def clip_grad_norm(gradients: Iterable[Tensor | None], most: float = math.inf) -> GradientNorm:
    """Scale gradients in place so that their joint norm is at most `most`, and say what it was.

    Gradients that are not finite are left as they are, for the caller to stop at. One term of a loss gets a bound of
    its own when its gradients are taken and clipped apart, and then added to the others.
    """
    if not most > 0:
        raise ValueError(f"the bound of a norm is above 0; this one is {most}")
    there = [gradient for gradient in gradients if gradient is not None]
    value = float(whole(torch.nn.utils.get_total_norm(there))) if there else 0.0
    scaled = math.isfinite(value) and value > most
    if scaled:
        torch._foreach_mul_(there, most / value)
    return GradientNorm(value, scaled)


def cap_norm(gradients: Iterable[Tensor | None], most: float) -> None:
    """The same without a word, so that nobody waits for it."""
    there = [gradient for gradient in gradients if gradient is not None]
    if there:
        norm = whole(torch.nn.utils.get_total_norm(there))
        torch._foreach_mul_(there, (most / norm).clamp(max=1.0).masked_fill(~norm.isfinite(), 1.0))


class EndNorm:
    """The norm of a loss's gradient at the last hidden states of its tokens and at the head, over all parts of a step:
    the tokens of two parts are different places, the head is the same one."""

    def __init__(self) -> None:
        self._squares: Tensor | None = None
        self._head_VE: Tensor | None = None

    def add(self, hidden_ME: Tensor | None, head_VE: Tensor | None) -> None:
        """The gradients of one part."""
        if hidden_ME is not None:
            squares = hidden_ME.double().square().sum()
            self._squares = squares if self._squares is None else self._squares + squares
        if head_VE is not None:
            self._head_VE = head_VE if self._head_VE is None else self._head_VE + head_VE

    def factor(self, most: float, ranks: Ranks) -> float:
        """What scales the whole gradient down to this norm; 1 where it is no larger, or not finite."""
        square = self._squares if self._squares is not None else torch.zeros(())
        square = ranks.sum(square)
        if self._head_VE is not None:
            square = square + ranks.sum(self._head_VE).double().square().sum()
        value = math.sqrt(float(square))
        return most / value if math.isfinite(value) and value > most else 1.0
