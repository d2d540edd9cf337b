"""Linear layers with the weights in the layout that is fastest on this machine.

On a CPU, oneDNN's own layout can be much faster than the plain one, and with it a row of the result does not depend on
how many other rows there are. It is a copy of the weights, refreshed when they change; so it is used where there is
memory to spare and where a measurement shows that it is faster.
"""

import os
import time
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

_ROWS = 32
"""The batch size for which layouts are compared."""


class LinearOp(Protocol):
    """`linear(x_NI) -> y_NO`."""

    def __call__(self, x_NI: Tensor) -> Tensor: ...

    def refresh(self) -> None:
        """The weights have changed in place."""
        ...


class PlainLinear:
    """The weights as they are."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self._weight_OI, self._bias_O = weight_OI, bias_O

    def __call__(self, x_NI: Tensor) -> Tensor:
        return functional.linear(x_NI, self._weight_OI, self._bias_O)

    def refresh(self) -> None:
        return


class PackedLinear:
    """A copy in oneDNN's layout."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self._weight_OI, self._bias_O = weight_OI, bias_O
        self.refresh()

    def __call__(self, x_NI: Tensor) -> Tensor:
        if len(x_NI) == 1:  # one row goes another way inside, which is slower and rounds differently
            return self(x_NI.expand(2, -1).contiguous())[:1]
        return torch.ops.mkldnn._linear_pointwise(x_NI, self._packed, self._bias_O, "none", [], "")

    def refresh(self) -> None:
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(self._weight_OI, None)


def fastest_linear(weight_OI: Tensor, total_bytes: int) -> type[PlainLinear] | type[PackedLinear]:
    """The layout for a network of this size, measured with one of its weights."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if weight_OI.device.type != "cpu" or not torch.backends.mkldnn.is_available() or total_bytes > memory // 8:
        return PlainLinear
    x_NI = torch.ones(_ROWS, weight_OI.shape[1], dtype=weight_OI.dtype)
    with torch.inference_mode():
        plain, packed = (_seconds(kind(weight_OI, None), x_NI) for kind in (PlainLinear, PackedLinear))
    return PackedLinear if packed < plain else PlainLinear


def _seconds(linear: Callable[[Tensor], Tensor], x_NI: Tensor) -> float:
    def measure() -> float:
        started = time.perf_counter()
        linear(x_NI)
        return time.perf_counter() - started

    return min(measure() for _ in range(10))
