"""Copies between host and device that do not wait for each other: the host goes on while the device computes.

A plain copy from ordinary memory waits until the device has finished all that was queued before it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def upload(values: Sequence[Any] | Tensor, device: torch.device) -> Tensor:
    """The values on the device. A tensor must not be written to afterwards."""
    tensor: Tensor = torch.as_tensor(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Download:
    """Tensors on their way to the host."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._there = [self._fetch(tensor) for tensor in tensors]
        self._copied = torch.cuda.Event() if any(tensor.is_cuda for tensor in tensors) else None
        if self._copied:
            self._copied.record()

    def wait(self) -> list[Tensor]:
        if self._copied:
            self._copied.synchronize()
        return self._there

    @staticmethod
    def _fetch(tensor: Tensor) -> Tensor:
        if not tensor.is_cuda:
            return tensor
        pinned: Tensor = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return pinned.copy_(tensor, non_blocking=True)
