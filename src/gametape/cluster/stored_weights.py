"""Weights in Ray's object store. They travel by reference, with a checksum; the driver never holds them."""

import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ray
import torch
from torch import Tensor

from gametape.core.errors import GametapeError
from gametape.train.rollouts import Weights


@dataclass(frozen=True)
class PackedTensor:
    """Bytes that the object store maps into readers without a copy."""

    dtype: str
    shape: tuple[int, ...]
    data: Any


PackedWeights = dict[str, PackedTensor]


class WeightsDamaged(GametapeError):
    """Weights are not the ones that were published."""

    exit_code = 3


def pack(weights: Weights) -> PackedWeights:
    return {
        name: PackedTensor(
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy(),
        )
        for name, tensor in weights.items()
    }


def unpack(packed: PackedWeights) -> dict[str, Tensor]:
    """Tensors that may not be written to: their memory belongs to the object store."""
    warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
    tensors = {}
    for name, one in packed.items():
        tensors[name] = torch.from_numpy(one.data).view(getattr(torch, one.dtype)).reshape(one.shape)
    return tensors


def checksum(packed: PackedWeights) -> int:
    """Of names, shapes and all bytes."""
    total = 0
    for name in sorted(packed):
        one = packed[name]
        total = zlib.crc32(f"{name} {one.dtype} {one.shape}".encode(), total)
        total = zlib.crc32(one.data, total)
    return total


class StoredWeights(Mapping[str, Tensor]):
    """A reference to packed weights, which reads them when it is asked for a tensor. It goes to other processes as
    what it is, a reference."""

    def __init__(self, reference: Any, expected: int) -> None:
        self.reference, self.expected = reference, expected

    def read(self) -> dict[str, Tensor]:
        packed: PackedWeights = ray.get(self.reference)
        if checksum(packed) != self.expected:
            raise WeightsDamaged("the weights in the object store have another checksum than those that were published")
        return unpack(packed)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reference, self.expected)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return self.read()


def store(weights: Weights) -> StoredWeights:
    """Put weights that are in this process into the object store."""
    if isinstance(weights, StoredWeights):
        return weights
    packed = pack(weights)
    return StoredWeights(ray.put(packed), checksum(packed))
