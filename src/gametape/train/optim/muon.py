"""Muon: momentum, made orthogonal, for the matrices between a network's layers.

All directions of an update get the same length, also those in which gradients are rarely seen.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

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
    """Nesterov momentum; weight decay apart from the gradient."""

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        for group in self.param_groups:
            if any(param.dim() != 2 for param in group["params"]):
                raise ValueError("Muon is for matrices")

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:
        for group in self.param_groups:
            for param_RC in group["params"]:
                if param_RC.grad is not None:
                    self._update(param_RC, group)

    def _update(self, param_RC: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param_RC]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param_RC)
        momentum_RC = state["momentum"]
        momentum_RC.lerp_(param_RC.grad, 1 - _MOMENTUM)
        direction_RC = orthogonalise(param_RC.grad.lerp(momentum_RC, _MOMENTUM))
        param_RC.mul_(1 - group["lr"] * group["weight_decay"])
        param_RC.add_(direction_RC, alpha=-group["lr"] * _LIKE_ADAM * max(param_RC.shape) ** 0.5)
