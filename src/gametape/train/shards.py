"""Sharding of a policy over ranks by FSDP2: each layer by itself, the embeddings and the head as what is around them.

A mesh of one dimension shards over all ranks; one of two, replicas by shards, shards within each row and keeps as many
copies as there are rows (HSDP). Gradients are summed over all ranks, because losses are divided by constants of the
whole step and not by what a rank has of it. Parameters stay in their own precision, and their sums are made in float32;
`compute_dtype` is what layers compute in.
"""

import os
import socket
import warnings
from dataclasses import dataclass
from datetime import timedelta

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

TCP = "tcp://"
_SECONDS_IN_A_MEETING = 600.0
"""For which a rank waits for the others before it gives up."""


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
        dist.init_process_group(_backend(placement), store=dist.HashStore(), rank=0, world_size=1)
    return Ranks(open_mesh(placement.device, 1), placement.torch_dtype)


@dataclass(frozen=True)
class RankPlace:
    """One of the processes that learn together."""

    rank: int
    world: int
    replicas: int
    store: str
    """Where they find each other: a file, or `tcp://HOST:PORT`, where the first rank listens."""
    placement: Placement
    gpu: int = 0
    """The one that is its own, of those that it sees."""
    interface: str = ""
    """The network interface that they talk over; empty: the loopback."""


def join_ranks(place: RankPlace) -> Ranks:
    """This process as one of several, on a device of its own where these are GPUs."""
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ[variable] = place.interface or _loopback()
    placement, timeout = place.placement, timedelta(seconds=_SECONDS_IN_A_MEETING)
    if placement.device == "cuda":
        torch.cuda.set_device(place.gpu)
    dist.init_process_group(
        _backend(placement),
        store=_open_store(place, timeout),
        rank=place.rank,
        world_size=place.world,
        timeout=timeout,
    )
    mesh = open_mesh(placement.device, place.world, place.replicas)
    background = dist.new_group(backend="gloo", timeout=timeout)
    return Ranks(mesh, None if placement == CPU_FLOAT32 else placement.torch_dtype, background)


def _open_store(place: RankPlace, timeout: timedelta) -> dist.Store:
    if not place.store.startswith(TCP):
        return dist.FileStore(place.store, place.world)
    host, _, port = place.store.removeprefix(TCP).rpartition(":")
    return dist.TCPStore(host, int(port), place.world, place.rank == 0, timeout)


def _backend(placement: Placement) -> str:
    """Checkpoints are written from the machine's memory, whatever the device is."""
    return "cpu:gloo,cuda:nccl" if placement.device == "cuda" else "gloo"


def _loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), "lo")


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
    """A whole tensor that every rank has, placed and sharded as another one; one that is sharded stays as it is."""
    if isinstance(tensor, DTensor):
        return tensor
    placed = tensor.to(like.device)
    if not isinstance(like, DTensor):
        return placed
    return distribute_tensor(placed, like.device_mesh, like.placements, src_data_rank=None)
