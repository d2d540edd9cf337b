"""Sharding of a policy over ranks by FSDP2: each layer by itself, the embeddings and the head as what is around them.

A mesh of one dimension shards over all ranks; one of two, replicas by shards, shards within each row and keeps as many
copies as there are rows (HSDP). Gradients are summed over all ranks, because losses are divided by constants of the
whole step and not by what a rank has of it. Parameters stay in their own precision, and their sums are made in float32;
`compute_dtype` is what layers compute in.
"""

import warnings

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from gametape.core.errors import BadInput
from gametape.engines.torch.device import CPU_FLOAT32, Placement
from gametape.train.policy_module import PolicyModule
from gametape.train.ranks import Ranks


def open_mesh(device_type: str, world: int, replicas: int = 1) -> DeviceMesh:
    """Over all ranks of the process group that is open."""
    if world % replicas:
        raise BadInput(f"{world} ranks cannot keep {replicas} copies: give a number that divides them")
    if replicas == 1:
        return init_device_mesh(device_type, (world,), mesh_dim_names=("shard",))
    return init_device_mesh(device_type, (replicas, world // replicas), mesh_dim_names=("replicate", "shard"))


def open_ranks(placement: Placement) -> Ranks:
    """This process as the only rank. In float32 on a CPU there is nothing to shard and nothing to convert, and learner
    and sampler share their tensors; otherwise the weights are kept in float32 apart from what layers compute in."""
    if placement == CPU_FLOAT32:
        return Ranks()
    if not dist.is_initialized():
        backend = "nccl" if placement.device == "cuda" else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return Ranks(open_mesh(placement.device, 1), placement.torch_dtype)


def shard_module(
    module: PolicyModule, mesh: DeviceMesh, compute_dtype: torch.dtype | None = None, offload: bool = False
) -> None:
    """In place: its parameters are DTensors from now on, on the mesh's devices, or with `offload` in the machine's
    memory, where the optimiser then takes its steps."""
    place = CPUOffloadPolicy() if offload and mesh.device_type != "cpu" else OffloadPolicy()
    precision = MixedPrecisionPolicy(param_dtype=compute_dtype, reduce_dtype=torch.float32 if compute_dtype else None)
    names = set(module.network._no_split_modules or ())
    for layer in [part for part in module.network.modules() if type(part).__name__ in names]:
        fully_shard(layer, mesh=mesh, mp_policy=precision, offload_policy=place)
    # The head is used again after the forward, for losses: it stays gathered until the backward is over.
    fully_shard(module, mesh=mesh, mp_policy=precision, offload_policy=place, reshard_after_forward=False)
    # What it gives out are views of hidden states and head, and nothing is written to them.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)  # gloo has no other


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, gathered where it is sharded; every rank asks for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def as_sharded(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor that every rank has, placed and sharded as another one."""
    placed = tensor.to(like.device)
    if not isinstance(like, DTensor):
        return placed
    return distribute_tensor(placed, like.device_mesh, like.placements, src_data_rank=None)
