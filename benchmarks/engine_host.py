"""What the host adds to decoding on a GPU, measured where there is no GPU: the device is a clock.

    python benchmarks/engine_host.py [--slots N] [--prompt N] [--new N] [--stream N] [--step-ms MS] [--profile]

Requests go through `TorchEngine` from an event loop. The network computes nothing. Time is the processor time that the
host spends, and what it would wait for a device on which a step takes `--step-ms` and a prompt's token 2 us; so the
figure does not depend on what else the machine does. Printed are milliseconds a step, and what of them is not the
device's: the rest is what the host did while the device had nothing to do. `--profile` prints the functions of the
engine's thread.
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import random
import statistics
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.decode_rounds import DecodeRow, DrawnTokens
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.stepper import EngineLimits, Stepper

BLOCK = 16
ROUND = 16
VOCABULARY = 40000
READ_SECONDS = 2e-6


class Device:
    """A device that is a clock: the host's processor time, and the time that the host has waited for it."""

    def __init__(self) -> None:
        self._waited = self._free = 0.0
        self._origin = time.process_time()

    def now(self) -> float:
        return time.process_time() - self._origin + self._waited

    def queue(self, seconds: float) -> float:
        """Work behind all that was queued before; returns when it ends."""
        self._free = max(self._free, self.now()) + seconds
        return self._free

    def wait_for_all(self) -> None:
        self.wait(self._free)

    def wait(self, until: float) -> None:
        self._waited += max(0.0, until - self.now())


class IdleRounds:
    """A `GraphRunner` that draws nothing, but takes its time and returns tokens as the real one does."""

    max_length = 8192
    max_stop_ids = 8

    def __init__(self, slots: int, device: Device, step: float) -> None:
        self._device, self._step = device, step
        self._ids_NS = torch.randint(VOCABULARY, (slots, ROUND), dtype=torch.int32)
        self._logprobs_NS = torch.rand(slots, ROUND)
        self._sent: deque[tuple[list[int], float]] = deque()
        self.starts = self.rounds = 0

    def start(self, rows: Sequence[DecodeRow], steps: int) -> None:
        self.starts += 1
        self._limits = [row.max_new_tokens for row in rows]
        self.continue_round(steps)

    def continue_round(self, steps: int) -> None:
        self.rounds += 1
        drawn = [min(steps, limit) for limit in self._limits]
        self._limits = [limit - count for limit, count in zip(self._limits, drawn, strict=True)]
        self._sent.append((drawn, self._device.queue(steps * self._step)))

    def finish(self) -> list[DrawnTokens]:
        drawn, ends = self._sent.popleft()
        self._device.wait(ends)
        ids = self._ids_NS[: len(drawn)].tolist()
        logprobs = self._logprobs_NS[: len(drawn)].tolist()
        return [DrawnTokens(i[:n], p[:n]) for n, i, p in zip(drawn, ids, logprobs, strict=True)]


def idle_engine(slots: int, tokens: int, device: Device, step: float) -> tuple[TorchEngine, IdleRounds]:
    shape: Any = SimpleNamespace(layers=1, heads=1, kv_heads=1, head_dim=1, vocabulary=VOCABULARY)
    pool = BlockPool(shape, -(-tokens // BLOCK), BLOCK, torch.device("cpu"), torch.float32)

    def read(ids: Sequence[int], *_: object) -> torch.Tensor:
        device.queue(len(ids) * READ_SECONDS)
        return torch.zeros(len(ids), 1)

    pool._in_runs = False  # as on a GPU
    decoder: Any = SimpleNamespace(
        spec=shape,
        device=torch.device("cpu"),
        dtype=torch.float32,
        forward=read,
        logits=lambda hidden_NE: torch.zeros(len(hidden_NE), 64),
    )
    rounds = IdleRounds(slots, device, step)
    limits = EngineLimits(max_sequences=slots, token_budget=8192)
    return TorchEngine(Stepper(decoder, pool, lambda *_: None, limits, rounds)), rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=512)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=256)
    parser.add_argument("--stream", type=int, default=0, help="so many requests of many lengths, instead of a batch")
    parser.add_argument("--step-ms", type=float, default=1.65)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(asyncio.run((stream if asked.stream else measure)(asked)), indent=1))


async def measure(asked: argparse.Namespace) -> dict[str, float]:
    """The first batch fills the pool, so that the others have to evict as an engine does that has run for a while."""
    device = Device()
    tokens = 2 * asked.slots * (asked.prompt + asked.new + 64)
    engine, rounds = idle_engine(asked.slots, tokens, device, asked.step_ms / 1e3)
    firsts, wholes, starts, sent = [], [], 0, 0
    profile = cProfile.Profile()
    try:
        for number in range(asked.repeats + 1):
            firsts.append(await spent(engine, device, asked, 1, number))
            starts, sent = rounds.starts, rounds.rounds
            if asked.profile and number == asked.repeats:
                engine._stepper.step = partial(profile.runcall, engine._stepper.step)  # type: ignore[method-assign]
            wholes.append(await spent(engine, device, asked, asked.new + 1, number + 1000))
    finally:
        await engine.close()
    if asked.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    first, whole = statistics.median(firsts[1:]), statistics.median(wholes[1:])
    return {
        "prompts, ms": first * 1e3,
        "prompts and rounds, ms": whole * 1e3,
        "ms a step": (whole - first) / asked.new * 1e3,
        "host's, ms a step": (whole - first) / asked.new * 1e3 - asked.step_ms,
        "rounds sent": rounds.rounds - sent,
        "rounds started anew": rounds.starts - starts,
    }


async def stream(asked: argparse.Namespace) -> dict[str, float]:
    """Requests that all wait for a slot from the start, as in `engine_gpu.py --part stream`."""
    device = Device()
    engine, rounds = idle_engine(asked.slots, asked.slots * 4096, device, asked.step_ms / 1e3)
    dice = random.Random(0)
    requests = [request(dice, dice.randrange(16, 400), dice.randrange(16, 400), row) for row in range(asked.stream)]
    try:
        started = device.now()
        generations = await asyncio.gather(*(engine.generate(each) for each in requests))
        device.wait_for_all()
        seconds = device.now() - started
    finally:
        await engine.close()
    sampled = sum(len(each.completion_ids) for each in generations)
    return {
        "seconds": seconds,
        "tokens a second": sampled / seconds,
        "prompt tokens a second": sum(len(each.prompt_ids) for each in requests) / seconds,
        "rounds sent": rounds.rounds,
        "rounds started anew": rounds.starts,
    }


def request(dice: random.Random, prompt: int, new: int, seed: int) -> GenerateRequest:
    return GenerateRequest(
        request_id=str(seed),
        prompt_ids=[dice.randrange(1000, 40000) for _ in range(prompt)],
        max_tokens=new,
        sampling=Sampling(seed=seed),
    )


async def spent(engine: TorchEngine, device: Device, asked: argparse.Namespace, new: int, seed: int) -> float:
    """Seconds for a batch of requests, with prompts that the engine has not seen."""
    dice = random.Random(seed)
    requests = [request(dice, asked.prompt, new, row) for row in range(asked.slots)]
    started = device.now()
    await asyncio.gather(*(engine.generate(request) for request in requests))
    device.wait_for_all()
    return device.now() - started


if __name__ == "__main__":
    main()
