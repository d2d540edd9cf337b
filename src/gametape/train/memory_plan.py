"""What a run will need of memory, known before anything is allocated: from the shape of the network alone.

Weights, gradients and states are counted; activations are estimated, on the high side, and said to be.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.engines.torch.device import CPU_FLOAT32, Placement
from gametape.train.token_logprobs import BYTES_PER_LOGIT, LOGITS_AT_A_TIME

RECOMPUTE_FROM = 20_000_000
"""Parameters from which on memory is what runs out: layers are then computed again instead of kept."""
_KEPT_PER_LAYER = 40
"""Numbers of the network's width that a layer keeps for each row, about, where it is not computed again."""
_USABLE = 0.92
"""The share of free memory that may be planned with: allocators leave gaps."""
_FEWEST_KV_TOKENS = 1 << 14


class NotEnoughMemory(GametapeError):
    """A run would not fit."""

    exit_code = 3


@dataclass(frozen=True)
class Shape:
    """What memory goes by."""

    parameters: int
    adapted: int
    """Inputs and outputs of the linear layers that adapters go on, summed."""
    width: int
    layers: int
    head: int
    """Numbers in the matrix that makes logits."""
    kv_width: int
    """Numbers that keys and values of one token take."""

    @classmethod
    def of_directory(cls, directory: Path) -> "Shape":
        """Without reading a weight."""
        auto: Any = AutoModelForCausalLM
        config = AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            network = auto.from_config(config)
        text = config.get_text_config()
        head = network.get_output_embeddings()
        linear = [part for part in network.modules() if isinstance(part, torch.nn.Linear) and part is not head]
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        kv_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        return cls(
            sum(parameter.numel() for parameter in network.parameters()),
            sum(part.in_features + part.out_features for part in linear),
            text.hidden_size,
            text.num_hidden_layers,
            head.weight.numel(),
            2 * text.num_hidden_layers * kv_heads * head_dim,
        )


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on the device that learns and samples, by what they are for."""

    shape: Shape
    bytes_for: dict[str, int]
    free: int

    @property
    def total(self) -> int:
        return sum(self.bytes_for.values())

    @property
    def fits(self) -> bool:
        return self.total <= self.free * _USABLE

    def kv_tokens(self, most: int, itemsize: int) -> int:
        """How many tokens the sampler can keep the keys and values of: as many as are asked for, or fit."""
        room = int(self.free * _USABLE) - (self.total - self.bytes_for["keys and values"])
        return max(_FEWEST_KV_TOKENS, min(most, room // (self.shape.kv_width * itemsize)))

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {_gigabytes(size)}" for name, size in self.bytes_for.items() if size)
        return f"{_gigabytes(self.total)} ({parts})"


def plan_memory(shape: Shape, config: RunConfig, placement: Placement, free: int) -> MemoryPlan:
    """For the device that holds most: the only one, or that of the first rank, which samples too. Ranks on a CPU share
    its memory, so that all of them are counted. What is sharded is what the optimiser sees and the copies; the layers
    that are computed, the head and the activations are whole on every rank."""
    total, narrow = shape.parameters, placement.torch_dtype.itemsize
    many = config.ranks > 1
    here = config.ranks if placement.device == "cpu" else 1
    shards = config.ranks // config.replicas
    rank = config.lora.rank
    learned = shape.adapted * rank if rank else total
    apart = bool(rank) or placement != CPU_FLOAT32
    ttf = config.arm.startswith("rlvr_ttf")
    keeps_start = config.memory.measure_start or (ttf and config.ttf.anchor > 0)
    states = 8 if config.optim.name == "adamw" else 6
    on_device = 0 if config.memory.offload else 1
    kept = 1 if _recomputes(config, total) else _KEPT_PER_LAYER
    rows = config.optim.micro_batch_tokens
    copies = {
        "start": 0 if rank or not keeps_start else total * narrow,
        "teacher": 0 if not ttf or config.ttf.teacher == "current" else (learned if rank else total) * 4,
    }
    sharded = {
        "weights": learned * 4 * on_device + (total * narrow if rank else 0),
        "gradients": learned * 4 * on_device,
        "optimiser": learned * states * on_device,
        **copies,
    }
    whole = {
        "gathered layers": 2 * total // shape.layers * narrow if apart or many else 0,
        "head and logits": (0 if rank else shape.head * 8)
        + BYTES_PER_LOGIT[placement.device] * LOGITS_AT_A_TIME[placement.device],
        "activations (estimate)": rows * shape.width * narrow * (shape.layers * kept + _KEPT_PER_LAYER),
    }
    return MemoryPlan(
        shape,
        {
            **{name: -(-size // shards) * here for name, size in sharded.items()},
            **{name: size * here for name, size in whole.items()},
            "sampler": total * (narrow if apart or many else 0) + (total * narrow if many and here > 1 else 0),
            "keys and values": _FEWEST_KV_TOKENS * shape.kv_width * narrow,
        },
        free,
    )


def check_memory(directory: Path, config: RunConfig, placement: Placement) -> MemoryPlan:
    """The plan of a run; raises where it does not fit, with what would."""
    shape, free = Shape.of_directory(directory), free_bytes(placement.device)
    plan = plan_memory(shape, config, placement, free)
    if not plan.fits:
        raise NotEnoughMemory(f"{describe(plan, config, placement)}; {_advice(plan, config, placement)}")
    return plan


def describe(plan: MemoryPlan, config: RunConfig, placement: Placement) -> str:
    """One line: what the run takes, and what it would take the other way."""
    other = config.model_copy(update={"lora": config.lora.model_copy(update={"rank": 0 if config.lora.rank else 32})})
    ways = [(config, plan), (other, plan_memory(plan.shape, other, placement, plan.free))]
    said = [f"{'LoRA' if each.lora.rank else 'full'}: {_gigabytes(one.total)}" for each, one in ways]
    which = "all" if placement.device == "cpu" else "the first"
    ranks = f" for {which} of {config.ranks} ranks" if config.ranks > 1 else ""
    have = _gigabytes(plan.free)
    return f"{plan.shape.parameters / 1e9:.2g}B parameters, {'; '.join(said)}{ranks}; you have {have}"


def free_bytes(device: str) -> int:
    """What nobody uses at the moment."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return 1 << 62


def _recomputes(config: RunConfig, parameters: int) -> bool:
    return config.memory.recompute == "on" or (config.memory.recompute == "auto" and parameters >= RECOMPUTE_FROM)


def _advice(plan: MemoryPlan, config: RunConfig, placement: Placement) -> str:
    """The first setting that makes it fit, or nearly."""
    changes: dict[str, dict[str, Any]] = {
        "memory.recompute=on": {"memory": {"recompute": "on"}},
        "optim.micro_batch_tokens=4096": {"optim": {"micro_batch_tokens": min(4096, config.optim.micro_batch_tokens)}},
        "memory.measure_start=false": {"memory": {"measure_start": False}},
        "lora.rank=32": {"lora": {"rank": config.lora.rank or 32}},
    }
    tried, names = config, []
    for name, tables in changes.items():
        for table, values in tables.items():
            tried = tried.model_copy(update={table: getattr(tried, table).model_copy(update=values)})
        names.append(f"--set {name}")
        if plan_memory(plan.shape, tried, placement, plan.free).fits:
            return f"what fits: {' '.join(names)}"
    return "take a smaller model, or a device with more memory"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
