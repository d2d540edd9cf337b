"""The learner's update beside plain transformers, in one run: tokens a second and peak memory.

    python benchmarks/learner_gpu.py --shape 135m --batch 64x512 --batch 8x4096
    python benchmarks/learner_gpu.py --shape tiny --batch 4x64 --rounds 2      # small enough for a CPU

Ours is `LocalLearner.update` as `gametape train` calls it: packing, the whole loss, log-probs, entropy, distance to the
start, clipping and the step; `shared` are groups of eight whose prompt is half of each sample. Plain is transformers'
forward, a cross-entropy over all tokens in chunks that are computed again in the backward, and AdamW: eager, and with
every layer compiled by itself. Weights are random.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from gametape.core.config import LoraConfig, MemoryConfig, OptimConfig, RunConfig
from gametape.core.token_segments import TokenSegment
from gametape.engines.torch.device import choose_placement
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--batch", action="append", help="SAMPLESxTOKENS", required=True)
    parser.add_argument("--ways", default="ours,shared,eager,compiled")
    parser.add_argument("--recompute", choices=["auto", "on", "off"], default="auto")
    parser.add_argument("--lora", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for batch in arguments.batch:
        count, length = map(int, batch.split("x"))
        for way in arguments.ways.split(","):
            step = ours(arguments, count, length, way == "shared") if way in {"ours", "shared"} else None
            found = measured(
                step or plain(arguments, count, length, way == "compiled"), count * length, arguments.rounds
            )
            print(json.dumps({"shape": arguments.shape, "batch": batch, "way": way, **found}), flush=True)


def measured(step: Callable[[], object], tokens: int, rounds: int) -> dict[str, float | str | None]:
    """The median over rounds, after one that is not counted. Tokens that are shared count as often as they are used."""
    on_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if on_gpu else "cpu"
    seconds = []
    for number in range(rounds + 1):
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        if on_gpu:
            torch.cuda.synchronize()
        if number:
            seconds.append(time.perf_counter() - start)
    median = sorted(seconds)[len(seconds) // 2]
    peak = round(torch.cuda.max_memory_allocated() / 1e9, 2) if on_gpu else None
    return {"device": device, "tokens_per_second": round(tokens / median), "peak_gb": peak}


def ours(arguments: argparse.Namespace, count: int, length: int, shared: bool) -> Callable[[], object]:
    placement = choose_placement()
    torch.manual_seed(0)
    auto: Any = AutoModelForCausalLM
    network = auto.from_config(SHAPES[arguments.shape](), dtype=torch.float32).eval()
    no_format: Any = None
    policy = TrainablePolicy(network, no_format, length, {}, placement)
    config = RunConfig(
        arm="rlvr",
        model="smollm2",
        tasks="none",
        optim=OptimConfig(micro_batch_tokens=max(16384, length)),
        lora=LoraConfig(rank=arguments.lora),
        memory=MemoryConfig(recompute=arguments.recompute),
    )
    policy.adapt(config.lora, 0)
    learner = LocalLearner(policy, config, ranks=open_ranks(placement))
    samples = []
    for number in range(count):
        group = number // GROUP if shared else number
        prompt = _ids(length // 2, network.config.vocab_size, group)
        ids = prompt + _ids(length - len(prompt), network.config.vocab_size, count + number)
        mask = [0] * len(prompt) + [1] * (length - len(prompt)) if shared else [0] + [1] * (length - 1)
        segment = TokenSegment(ids, mask, [-5.0 * bit for bit in mask], [0] * length, mask)
        samples.append(TrainSample(segment, group, 1.0 if number % 2 else -1.0, rollout_index=number))
    batch = TrainBatch(tuple(samples), count)
    return lambda: learner.update(batch, 0, 0)


def plain(arguments: argparse.Namespace, count: int, length: int, compiled: bool) -> Callable[[], object]:
    placement = choose_placement()
    torch.manual_seed(0)
    config = SHAPES[arguments.shape]()
    auto: Any = AutoModelForCausalLM
    network = auto.from_config(config, dtype=placement.torch_dtype).to(placement.device).train()
    if arguments.recompute == "on":
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if compiled:
        for layer in network.model.layers:
            layer.compile(dynamic=False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=placement.device == "cuda" or None)
    lines = [_ids(length, config.vocab_size, number) for number in range(count)]
    ids = torch.tensor(lines, device=placement.device)
    at_once = max(1, 16384 // length)

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
