"""Trees to pack, their lines one by one, and a watch on the size of tensors."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gametape.train.packing import TokenNode, pack_nodes


def ids(length, start=0):
    return [(7 * (start + at) + 3) % 97 for at in range(length)]


GROUP = [
    TokenNode(ids(30)),
    *(TokenNode(ids(20 + 5 * number, number), parent=0) for number in range(4)),
    TokenNode(ids(9, 50), parent=2, at=11),
    TokenNode(ids(60, 80)),
    TokenNode(ids(3, 90), parent=6, at=0),
    TokenNode(ids(7, 60), parent=2, at=11, detached=True),
    TokenNode(ids(4, 70), parent=8, detached=True),
]
"""A prompt with four rollouts, branches off one of them (one twice as deep, without a gradient), and another line."""


def sequence_of(packed, number):
    """The tokens from the start of a node's line to its end."""
    return packed.ids_N[packed.paths[number]]


def alone(packed, number):
    """The same line as a tree of one node."""
    return pack_nodes([TokenNode(sequence_of(packed, number).tolist())])


class Largest(TorchDispatchMode):
    """The largest tensor that any operation gives back."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, tuple | list) else [out]:
            if isinstance(value, torch.Tensor):
                self.numel = max(self.numel, value.numel())
        return out
