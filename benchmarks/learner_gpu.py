"""The learner's update beside plain transformers, in one process: tokens a second and peak memory.

    python benchmarks/learner_gpu.py --suite --json learner-gpu.json
    python benchmarks/learner_gpu.py --shape 135m --batch 64x512 --batch 8x4096 --profile
    python benchmarks/learner_gpu.py --shape tiny --batch 4x64 --rounds 2      # small enough for a CPU

Ways, all with random weights and as many tokens in a pass:

- `ours`: `LocalLearner.update` as `gametape train` calls it: packing, the whole loss, log-probs, entropy, distance to
  the start, clipping and the step. Samples are new objects in every round, so nothing that is kept with them helps.
- `shared`: the same for groups of eight whose prompt is half of each sample. Tokens that are shared count as often as
  they are used.
- `target`: `ours`, with a hint of 32 tokens and a span of 64 to be distilled in one sample of eight; the policy is its
  own teacher.
- `lora`: `ours` with adapters of rank 32.
- `eager`, `compiled`: transformers' forward, a cross-entropy over all tokens in chunks that are computed again in the
  backward, clipping and AdamW on weights in half precision; `compiled` has each layer compiled by itself.

Time is the median over rounds after a first one, whose time stands apart: most of it is compilation. Every fourth
update of ours also reads some samples with the weights of the start; `tokens_per_second_of_all` is over all rounds.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from gametape.core.config import LoraConfig, MemoryConfig, OptimConfig, RunConfig, TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.engines.torch.device import choose_placement
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy
from gametape.train.rollouts import DistillTarget
from gametape.train.shards import open_ranks

SHAPES: dict[str, Any] = {
    "tiny": lambda: LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    ),
    "135m": lambda: LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, tie_word_embeddings=True, max_position_embeddings=8192,
    ),
    "0.6b": lambda: Qwen3Config(
        vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, max_position_embeddings=131072,
    ),
    "8b": lambda: Qwen3Config(
        vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=131072,
    ),
}  # fmt: skip
CHUNK = 2048
GROUP = 8
HINT, SPAN = 32, 64
PLAIN = ("eager", "compiled")


@dataclass(frozen=True)
class Case:
    shape: str
    batch: str
    ways: tuple[str, ...]
    recompute: str = "off"
    start: bool = True
    """Whether ours keeps the weights it began with, to measure the distance to them."""
    rounds: int = 5
    tokens: int = 16384
    """In one pass."""
    compile_layers: str = "auto"

    @property
    def samples(self) -> int:
        return int(self.batch.split("x")[0])

    @property
    def length(self) -> int:
        return int(self.batch.split("x")[1])


SUITE = (
    Case("135m", "64x512", ("ours", "shared", "compiled"), tokens=32768),
    Case("135m", "8x4096", ("ours", "shared", "compiled"), tokens=32768),
    Case("135m", "8x4032", ("ours", "target"), tokens=32768),
    Case("0.6b", "8x4096", ("ours", "shared", "compiled"), rounds=4, tokens=32768),
    Case("0.6b", "8x4032", ("ours", "target"), rounds=4, tokens=32768),
    Case("8b", "2x4096", ("ours", "lora", "compiled"), recompute="on", start=False, rounds=3),
    Case("0.6b", "1x32768", ("ours",), recompute="on", rounds=2),
    Case("0.6b", "1x131072", ("ours",), recompute="on", start=False, rounds=1),
)
"""8B keeps no start, for which one GPU has no room beside weights, gradients and states in float32. Where targets are
measured, a pass is not full to its last row, as few are: rows are padded to a multiple of 2,048, and 96 more than
32,768 would be taken for 34,816."""


def main() -> None:
    arguments = _arguments()
    cases = SUITE if arguments.suite else tuple(_case(arguments, batch) for batch in arguments.batch)
    lines = []
    for case in cases:
        for way in case.ways:
            lines.append(_line(case, way, arguments.profile))
            print(json.dumps(lines[-1]), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(lines, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="store_true", help="every case of the page, on one GPU")
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--batch", action="append", default=[], help="SAMPLESxTOKENS")
    parser.add_argument("--ways", default="ours,shared,target,eager,compiled")
    parser.add_argument("--recompute", choices=["auto", "on", "off"], default="off")
    parser.add_argument("--compile-layers", choices=["auto", "on", "off"], default="auto", help="of ours")
    parser.add_argument("--no-start", action="store_true")
    parser.add_argument("--tokens", type=int, default=16384, help="in one pass")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="where time goes, in one more round")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not arguments.suite and not arguments.batch:
        parser.error("--suite, or --batch")
    return arguments


def _case(arguments: argparse.Namespace, batch: str) -> Case:
    return Case(
        arguments.shape,
        batch,
        tuple(arguments.ways.split(",")),
        arguments.recompute,
        not arguments.no_start,
        arguments.rounds,
        arguments.tokens,
        arguments.compile_layers,
    )


def _line(case: Case, way: str, profile: bool) -> dict[str, Any]:
    """What one way does; afterwards nothing of it is left on the device."""
    line = {"shape": case.shape, "batch": case.batch, "way": way, "recompute": case.recompute}
    try:
        step = plain(case, way == "compiled") if way in PLAIN else ours(case, way)
        line |= measured(step, case.samples * case.length, case.rounds)
        if profile:
            line["profile"] = profiled(step)
    except torch.OutOfMemoryError:
        line["error"] = "out of memory"
    step = None  # type: ignore[assignment]
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        line["left_gb"] = round(torch.cuda.memory_allocated() / 1e9, 2)
    return line


def measured(step: Callable[[], object], tokens: int, rounds: int) -> dict[str, Any]:
    on_gpu = torch.cuda.is_available()
    seconds = []
    gc.collect()
    gc.freeze()
    for number in range(rounds + 1):
        if on_gpu and number < 2:
            torch.cuda.reset_peak_memory_stats()
        _wait()
        start = time.perf_counter()
        step()
        _wait()
        seconds.append(time.perf_counter() - start)
    gc.unfreeze()
    first, *others = seconds
    median = sorted(others)[len(others) // 2]
    return {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "torch": torch.__version__,
        "tokens_per_second": round(tokens / median),
        "tokens_per_second_of_all": round(tokens * len(others) / sum(others)),
        "seconds": round(median, 4),
        "all_seconds": [round(one, 4) for one in others],
        "first_seconds": round(first, 1),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2) if on_gpu else None,
    }


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def profiled(step: Callable[[], object]) -> dict[str, Any]:
    """One round: how long the host and the kernels were at work, how often the host waited, and for what."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    _wait()
    with torch.profiler.profile(activities=activities) as profiler:
        start = time.perf_counter()
        step()
        host = time.perf_counter() - start
        _wait()
    rows = profiler.key_averages()
    waits = {row.key: row.count for row in rows if "Synchronize" in row.key}
    copies = {row.key: row.count for row in rows if row.key.startswith("Memcpy")}
    on_device = sorted((row for row in rows if row.self_device_time_total), key=lambda row: -row.self_device_time_total)
    kernels = [row for row in on_device if row.device_type != torch.autograd.DeviceType.CPU]
    on_host = sorted(rows, key=lambda row: -row.self_cpu_time_total)
    return {
        "host_ms_until_returned": round(host * 1e3, 1),
        "kernel_ms": round(sum(row.self_device_time_total for row in kernels) / 1e3, 1),
        "launches": sum(row.count for row in kernels),
        "waits": waits,
        "copies": copies,
        "kernels": [[row.key[:90], row.count, round(row.self_device_time_total / 1e3, 2)] for row in kernels[:15]],
        "host": [[row.key[:90], row.count, round(row.self_cpu_time_total / 1e3, 2)] for row in on_host[:15]],
    }


def ours(case: Case, way: str) -> Callable[[], object]:
    placement = choose_placement()
    torch.manual_seed(0)
    auto: Any = AutoModelForCausalLM
    with torch.device(placement.device):
        network = auto.from_config(SHAPES[case.shape](), dtype=torch.float32).eval()
    no_format: Any = None
    policy = TrainablePolicy(network, no_format, case.length, {}, placement)
    config = RunConfig(
        arm="rlvr_ttf" if way == "target" else "rlvr",
        model="smollm2",
        tasks="none",
        optim=OptimConfig(micro_batch_tokens=case.tokens, compile_layers=case.compile_layers),
        lora=LoraConfig(rank=32 if way == "lora" else 0),
        memory=MemoryConfig(recompute=case.recompute, measure_start=case.start),
        ttf=TTFConfig(teacher="current", anchor=0.0),
    )
    policy.adapt(config.lora, 0)
    learner = LocalLearner(policy, config, ranks=open_ranks(placement))
    samples = [_sample(case, way, number, network.config.vocab_size) for number in range(case.samples)]
    numbers = count()
    return lambda: learner.update(TrainBatch(tuple(map(replace, samples)), case.samples), 0, next(numbers))


def _sample(case: Case, way: str, number: int, vocabulary: int) -> TrainSample:
    length, shared = case.length, way == "shared"
    group = number // GROUP if shared else number
    prompt = _ids(length // 2, vocabulary, group)
    ids = prompt + _ids(length - len(prompt), vocabulary, case.samples + number)
    mask = [0] * len(prompt) + [1] * (length - len(prompt)) if shared else [0] + [1] * (length - 1)
    segment = TokenSegment(ids, mask, [-5.0 * bit for bit in mask], [0] * length, mask)
    targets: tuple[DistillTarget, ...] = ()
    if way == "target" and number % GROUP == 0:
        span, at = min(SPAN, length // 4), length // 2
        targets = (DistillTarget(at, span, at, tuple(_ids(min(HINT, length // 4), vocabulary, number))),)
    return TrainSample(segment, group, 1.0 if number % 2 else -1.0, targets=targets, rollout_index=number)


def plain(case: Case, compiled: bool) -> Callable[[], object]:
    placement = choose_placement()
    torch.manual_seed(0)
    config = SHAPES[case.shape]()
    auto: Any = AutoModelForCausalLM
    with torch.device(placement.device):
        network = auto.from_config(config, dtype=placement.torch_dtype).train()
    if case.recompute == "on":
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if compiled:
        for layer in network.model.layers:
            layer.compile(dynamic=False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=placement.device == "cuda" or None)
    lines = [_ids(case.length, config.vocab_size, number) for number in range(case.samples)]
    ids = torch.tensor(lines, device=placement.device)
    at_once = max(1, case.tokens // case.length)

    def entropy(hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = functional.linear(hidden, network.lm_head.weight).float()
        loss: torch.Tensor = functional.cross_entropy(logits, targets, reduction="sum")
        return loss

    def step() -> None:
        for part in ids.split(at_once):
            hidden = network.model(part, use_cache=False).last_hidden_state[:, :-1].flatten(0, 1)
            targets = part[:, 1:].flatten()
            pieces = zip(hidden.split(CHUNK), targets.split(CHUNK), strict=True)
            losses = [checkpoint(entropy, *piece, use_reentrant=False) for piece in pieces]
            (torch.stack(losses).sum() / ids.numel()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ids(count: int, vocabulary: int, seed: int) -> list[int]:
    drawn = torch.randint(0, vocabulary, (count,), generator=torch.Generator().manual_seed(seed))
    return list(drawn.tolist())


if __name__ == "__main__":
    main()
