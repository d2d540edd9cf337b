"""The processes that learn together, and how the parts of a step are dealt to them.

Every rank makes the same calls with the same arguments, and knows the whole batch; it goes through its share of the
parts. All ranks make as many passes of each kind, because each pass of a sharded module is a meeting of all of them: a
rank without a part of its own goes through a small one that does not count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from gametape.train.batch import TrainSample

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """Samples that go through one forward of this rank."""

    samples: list[TrainSample]
    counts: bool = True
    """False where it only keeps the others company."""


class Ranks:
    """Without a mesh it is one process by itself; the process group is the one that the mesh was made in."""

    def __init__(
        self,
        mesh: DeviceMesh | None = None,
        compute_dtype: torch.dtype | None = None,
        background: dist.ProcessGroup | None = None,
    ) -> None:
        """Layers compute in `compute_dtype`; None: as their parameters are. `background` is for what all ranks do
        together beside learning, which must not come between the meetings of that."""
        self.mesh, self.compute_dtype, self.background = mesh, compute_dtype, background
        self.world = mesh.size() if mesh else 1
        self.rank = dist.get_rank() if mesh else 0

    def deal(
        self, parts: Sequence[list[TrainSample]], kind: Callable[[list[TrainSample]], bool] = lambda _samples: False
    ) -> list[Part]:
        """This rank's parts. Those of a kind are gone through at the same time, those for which it holds first."""
        mine: list[Part] = []
        for wanted in (True, False):
            alike = [Part(samples) for samples in parts if kind(samples) == wanted]
            if not alike:
                continue
            fitting = [sample for part in alike for sample in part.samples if kind([sample]) == wanted]
            company = Part([min(fitting, key=lambda sample: len(sample.segment.ids))], counts=False)
            alike += [company] * (-len(alike) % self.world)
            mine += alike[self.rank :: self.world]
        return mine

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, value: T) -> list[T]:
        """The value of each rank, by rank. One rank keeps its own as it is: messages would have to wait for its GPU."""
        if self.world == 1:
            return [value]
        values: list[T | None] = [None] * self.world
        dist.all_gather_object(values, value)
        return [each for each in values if each is not None]

    def share(self, values: dict[int, Tensor], lengths: Mapping[int, int], like: Tensor) -> dict[int, Tensor]:
        """Vectors by key that each rank has some of, in all ranks. `lengths` has the key and the length of each, in the
        same order everywhere; keys themselves may differ."""
        if self.world == 1:
            return values
        flat = like.new_zeros(sum(lengths.values()))
        pieces = dict(zip(lengths, flat.split(list(lengths.values())), strict=True))
        for key, value in values.items():
            pieces[key].copy_(value)
        self.sum(flat)
        return pieces

    def any(self, condition: bool) -> bool:
        """Whether it holds on any rank."""
        if self.world == 1:
            return condition
        assert self.mesh
        return bool(self.sum(torch.tensor(float(condition), device=self.mesh.device_type)))
