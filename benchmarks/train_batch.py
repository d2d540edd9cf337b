"""The batches that `benchmarks/train.py` gives to both sides, and what a process tells about a step over one."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

LENGTH, SPAN, HINT = 4096, 50, 17
LEARNING_RATE = 1e-6


@dataclass(frozen=True)
class Case:
    """How many rollouts follow one prompt, and the tokens of the prompt and of the longest of them."""

    rollouts: int
    prompt: int
    longest: int


CASES = {"group": Case(8, 256, 256), "long": Case(2, 256, LENGTH - 256)}
TARGET = Case(1, 256, LENGTH - 256)


@dataclass(frozen=True)
class Drawn:
    """A group with a length and an advantage of its own for each rollout, the same in every process."""

    prompt: list[int]
    completions: list[list[int]]
    advantages: list[float]

    @property
    def tokens(self) -> int:
        """Those of the rollouts, prompts included, however a side computes them."""
        return sum(len(self.prompt) + len(one) for one in self.completions)


def drawn(case: Case) -> Drawn:
    chance = random.Random(0)
    shorter = [chance.randint(case.longest * 6 // 10, case.longest) for _ in range(case.rollouts - 1)]
    completions = [some_ids(chance, length) for length in (case.longest, *shorter)]
    advantages = [1.0 if number % 2 else -1.0 for number in range(case.rollouts)]
    return Drawn(some_ids(chance, case.prompt), completions, advantages)


def some_ids(chance: random.Random, length: int) -> list[int]:
    return [chance.randrange(100, 40_000) for _ in range(length)]


def network_in(model: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).train()


def shaped() -> Any:
    """A network of SmolLM2-135M's shape with random weights: as dear, and nothing to fetch."""
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def told(batch: Drawn, seconds: float, before_mb: float, gradient_norm: float) -> dict[str, Any]:
    peak_mb = resident_mb("VmHWM")
    return {
        "tokens": batch.tokens,
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_mb),
        "step_mb": round(peak_mb - before_mb),
        "gradient_norm": round(gradient_norm, 5),
    }


def resident_mb(field: str) -> float:
    """`VmRSS`, what this process holds now, or `VmHWM`, the most it has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
