"""What a run will need of memory, known before anything is allocated: from the shape of the network alone.

Weights, gradients and states are counted; activations are estimated, on the high side, and said to be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from gametape.core.config import ContextConfig, RunConfig
from gametape.core.errors import GametapeError
from gametape.engines.torch.device import CPU_FLOAT32, Placement
from gametape.train.context_window import read_model_config
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
    window: int
    """The tokens of its longest sample."""

    @classmethod
    def of_directory(cls, directory: Path, context: ContextConfig = ContextConfig()) -> "Shape":  # noqa: B008 - frozen
        """Without reading a weight, with the window that a run asks for."""
        auto: Any = AutoModelForCausalLM
        config = read_model_config(directory, context)
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
            text.max_position_embeddings,
        )


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on the device that learns and samples, by what they are for."""

    shape: Shape
    bytes_for: dict[str, int]
    free: int
    placement: Placement

    @property
    def total(self) -> int:
        return sum(self.bytes_for.values())

    @property
    def fits(self) -> bool:
        return self.total <= self.free * _USABLE

    def kv_tokens(self, most: int, itemsize: int) -> int:
        """How many tokens the sampler can keep the keys and values of: as many as are asked for, or fit."""
        room = int(self.free * _USABLE) - (self.total - self.bytes_for["keys and values"])
        return max(_fewest_kv_tokens(self.shape), min(most, room // (self.shape.kv_width * itemsize)))

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
    anchored = config.arm.startswith("rlvr_ttf") and config.ttf.anchor > 0 and config.ttf.teacher != "start"
    ttf = config.arm.startswith("rlvr_ttf") or config.arm == "rlvr_opsd"
    keeps_start = config.memory.measure_start or anchored
    states = 8 if config.optim.name == "adamw" else 6
    on_device = 0 if config.memory.offload else 1
    kept = 1 if _recomputes(config, total) else _KEPT_PER_LAYER
    rows = max(config.optim.micro_batch_tokens, shape.window)  # a sample is never divided
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
        # Targets take their logits from the same room, and keep a gradient of the head of their own.
        "head and logits": (0 if rank else shape.head * (12 if ttf else 8))
        + BYTES_PER_LOGIT[placement.device] * LOGITS_AT_A_TIME[placement.device],
        "activations (estimate)": rows * shape.width * narrow * (shape.layers * kept + _KEPT_PER_LAYER),
    }
    return MemoryPlan(
        shape,
        {
            **{name: -(-size // shards) * here for name, size in sharded.items()},
            **{name: size * here for name, size in whole.items()},
            "sampler": total * (narrow if apart or many else 0) + (total * narrow if many and here > 1 else 0),
            "keys and values": _fewest_kv_tokens(shape) * shape.kv_width * narrow,
        },
        free,
        placement,
    )


def _fewest_kv_tokens(shape: Shape) -> int:
    """Room for one rollout at least."""
    return max(_FEWEST_KV_TOKENS, shape.window)


def check_memory(directory: Path, config: RunConfig, placement: Placement) -> MemoryPlan:
    """The plan of a run with the model in a directory; raises where it does not fit, with what would."""
    shape, free = Shape.of_directory(directory, config.context), free_bytes(placement.device)
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
        machine = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        machine = 1 << 62
    return min(machine, _container_bytes(Path("/sys/fs/cgroup")))


def _container_bytes(group: Path) -> int:
    """What the limit of a container leaves, where there is one; file caches are given back when they are needed."""
    try:
        most, used = int((group / "memory.max").read_text()), int((group / "memory.current").read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, most - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):  # no limit is the word `max`
        return 1 << 62


def _recomputes(config: RunConfig, parameters: int) -> bool:
    return config.memory.recompute == "on" or (config.memory.recompute == "auto" and parameters >= RECOMPUTE_FROM)


def _advice(plan: MemoryPlan, config: RunConfig, placement: Placement) -> str:
    """The settings that make it fit, those first that cost least; of windows the longest that does."""
    micro, window = config.optim.micro_batch_tokens, plan.shape.window
    shorter = [tokens for tokens in (65536, 32768, 16384, 8192, 4096) if tokens < window]
    changes: list[tuple[str, str, Any]] = [
        *([("memory", "recompute", "on")] if not _recomputes(config, plan.shape.parameters) else []),
        *([("optim", "micro_batch_tokens", 4096)] if micro > 4096 else []),
        *(("context", "tokens", tokens) for tokens in shorter),
        *([("memory", "measure_start", False)] if config.memory.measure_start else []),
        *([("lora", "rank", 32)] if not config.lora.rank else []),
    ]

    def fits(settings: Mapping[tuple[str, str], Any]) -> bool:
        tried = config
        for (table, key), value in settings.items():
            tried = tried.model_copy(update={table: getattr(tried, table).model_copy(update={key: value})})
        shape = replace(plan.shape, window=min(window, tried.context.tokens or window))
        return plan_memory(shape, tried, placement, plan.free).fits

    chosen: dict[tuple[str, str], Any] = {}
    for table, key, value in changes:
        chosen[table, key] = value
        if fits(chosen):
            break
    else:
        return "take a smaller model, or a device with more memory"
    for name in list(chosen):
        without = {other: value for other, value in chosen.items() if other != name}
        chosen = without if fits(without) else chosen
    settings = " ".join(f"--set {table}.{key}={str(value).lower()}" for (table, key), value in chosen.items())
    return f"what fits: {settings}"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
