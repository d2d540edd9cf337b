"""Tokens per second of the embedded engine on this CPU, beside `transformers.generate` and vLLM, in one run.

    python benchmarks/engine.py [--only single rollouts] [--model DIRECTORY] [--results FILE]

single    32 requests of 100 tokens, 64 sampled for each
rollouts  16 rollouts of 8 turns: a system prompt of 200 tokens that all share, then 100 tokens of observation and 32
          sampled in each turn

Every side decodes greedily in float32 and never stops early, so all do the same work. `generate` is given batches
without padding, its best case; it reads the whole conversation in each turn, or is handed its cache from the last one.
vLLM takes part where `scripts/setup-vllm.sh` has been run. Seconds are those of the work alone, after a short warm-up.
The sides take turns, two rounds of them, and the better one counts for each, so that what else the machine does weighs
on all alike. The report is written anew whenever a side is through.

Also measured: how far the log-probabilities of what was sampled are from the trainer's (the same network's plain
forward), and the floor that the matrix products of a step set.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from gametape.cli.shared import home_directory
from gametape.core.messages import GenerateRequest, Generation, Sampling
from gametape.engines import smollm2
from gametape.engines.torch.build import build_engine
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.linear import PackedLinear, PlainLinear

RESULTS = Path(__file__).parent / "results" / "engine.json"
REQUESTS, PROMPT, SAMPLED = 32, 100, 64
ROLLOUTS, TURNS, SYSTEM, OBSERVATION, REPLY = 16, 8, 200, 100, 32
ROUNDS = 2
PATIENCE = 900
"""Seconds for one answer of vLLM, most of which it spends on starting."""
GREEDY = Sampling(temperature=0)

Ids = list[int]
TimedRun = tuple[float, list[Ids]]
"""Seconds, and what was sampled for each request, or in all turns of each rollout."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=smollm2.model_directory(home_directory(None)))
    parser.add_argument("--only", nargs="*", choices=["single", "rollouts"], default=["single", "rollouts"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    network: Any = AutoModelForCausalLM.from_pretrained(chosen.model, dtype=torch.float32)
    network.generation_config.eos_token_id = None
    network.eval().requires_grad_(False)
    report: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "threads": torch.get_num_threads(), "kernel": platform.release()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "floor_tokens_per_second": floor(network),
    }

    def save(part: str, rows: dict[str, Any]) -> None:
        report[part] = rows
        chosen.results.write_text(json.dumps(report, indent=1) + "\n")

    vocabulary = network.config.vocab_size
    if "single" in chosen.only:
        prompts = texts(REQUESTS, PROMPT, vocabulary, seed=1)
        job = {"kind": "single", "prompts": prompts, "sampled": SAMPLED}
        compared(
            REQUESTS * SAMPLED,
            lambda rows: save("single", rows),
            engine=lambda: asyncio.run(engine_single(network, prompts)),
            generate=lambda: generate_single(network, prompts),
            vllm=lambda: vllm(chosen.model, job),
        )
        save("mismatch", mismatch(network, prompts))
    if "rollouts" in chosen.only:
        system = texts(1, SYSTEM, vocabulary, seed=2)[0]
        seen = [texts(TURNS, OBSERVATION, vocabulary, seed=10 + number) for number in range(ROLLOUTS)]
        job = {"kind": "rollouts", "system": system, "seen": seen, "sampled": REPLY}
        compared(
            ROLLOUTS * TURNS * REPLY,
            lambda rows: save("rollouts", rows),
            engine=lambda: asyncio.run(engine_rollouts(network, system, seen)),
            generate_kept_cache=lambda: generate_rollouts(network, system, seen, keep=True),
            generate_rereading=lambda: generate_rollouts(network, system, seen, keep=False),
            vllm=lambda: vllm(chosen.model, job),
        )
    print(json.dumps(report, indent=1))


def texts(count: int, length: int, vocabulary: int, seed: int) -> list[Ids]:
    dice = random.Random(seed)
    return [[dice.randrange(100, vocabulary) for _ in range(length)] for _ in range(count)]


def compared(
    tokens: int,
    save: Callable[[dict[str, Any]], None],
    engine: Callable[[], TimedRun],
    **others: Callable[[], TimedRun | None],
) -> None:
    """Tokens per second, the engine's as a multiple of the others', and how many tokens are the same as its own."""
    best: dict[str, TimedRun] = {}
    for number in range(ROUNDS):
        for name, work in {"engine": engine, **others}.items():
            result = work()
            if result is None:
                continue
            seconds, sampled = result
            assert sum(map(len, sampled)) == tokens
            print(
                f"round {number + 1}: {name} {seconds:.2f} s, load {os.getloadavg()[0]:.1f}",
                file=sys.stderr,
                flush=True,
            )
            best[name] = min(best.get(name, result), result)
            save({name: row(tokens, result, best["engine"]) for name, result in best.items()})


def row(tokens: int, result: TimedRun, own: TimedRun) -> dict[str, float]:
    seconds, sampled = result
    same = sum(a == b for x, y in zip(sampled, own[1], strict=True) for a, b in zip(x, y, strict=True))
    return {
        "seconds": round(seconds, 2),
        "tokens_per_second": round(tokens / seconds, 1),
        "engine_is_faster_by": round(seconds / own[0], 2),
        "tokens_as_the_engine": round(same / tokens, 4),
    }


# the engine


def asked(prompt: Ids, length: int, number: int) -> GenerateRequest:
    return GenerateRequest(request_id=str(number), prompt_ids=prompt, max_tokens=length, sampling=GREEDY)


async def with_engine(network: Any, work: Callable[[TorchEngine], Any]) -> TimedRun:
    engine = build_engine(network)
    assert engine is not None
    await asyncio.gather(*(engine.generate(asked([5 + n, 6, 7, 8], 4, n)) for n in range(8)))
    began = time.perf_counter()
    sampled = await work(engine)
    seconds = time.perf_counter() - began
    await engine.close()
    return seconds, sampled


async def engine_single(network: Any, prompts: list[Ids]) -> TimedRun:
    async def work(engine: TorchEngine) -> list[Ids]:
        result = await asyncio.gather(*(engine.generate(asked(ids, SAMPLED, n)) for n, ids in enumerate(prompts)))
        return [generation.completion_ids for generation in result]

    return await with_engine(network, work)


async def engine_rollouts(network: Any, system: Ids, seen: list[list[Ids]]) -> TimedRun:
    async def rollout(engine: TorchEngine, number: int, observations: list[Ids]) -> Ids:
        ids, sampled = list(system), []
        for observation in observations:
            ids = ids + observation
            result = await engine.generate(asked(ids, REPLY, number))
            ids = ids + result.completion_ids
            sampled += result.completion_ids
        return sampled

    async def work(engine: TorchEngine) -> list[Ids]:
        return await asyncio.gather(*(rollout(engine, number, each) for number, each in enumerate(seen)))

    return await with_engine(network, work)


# transformers


def generated(network: Any, batch: list[Ids], length: int, cache: Any = None) -> list[Ids]:
    ids_BT = torch.tensor(batch)
    with torch.inference_mode():
        out_BT = network.generate(
            ids_BT,
            attention_mask=torch.ones_like(ids_BT),
            max_new_tokens=length,
            min_new_tokens=length,
            do_sample=False,
            pad_token_id=0,
            past_key_values=cache,
        )
    return [row[len(batch[0]) :] for row in out_BT.tolist()]


def generate_single(network: Any, prompts: list[Ids]) -> TimedRun:
    generated(network, [ids[:4] for ids in prompts[:8]], 4)
    began = time.perf_counter()
    sampled = generated(network, prompts, SAMPLED)
    return time.perf_counter() - began, sampled


def generate_rollouts(network: Any, system: Ids, seen: list[list[Ids]], keep: bool) -> TimedRun:
    generated(network, [system[:4]] * 8, 4)
    batch = [list(system) for _ in seen]
    sampled: list[Ids] = [[] for _ in seen]
    cache = DynamicCache(config=network.config) if keep else None
    began = time.perf_counter()
    for turn in range(TURNS):
        batch = [ids + observations[turn] for ids, observations in zip(batch, seen, strict=True)]
        replies = generated(network, batch, REPLY, cache)
        batch = [ids + reply for ids, reply in zip(batch, replies, strict=True)]
        sampled = [ids + reply for ids, reply in zip(sampled, replies, strict=True)]
    return time.perf_counter() - began, sampled


# vLLM, in a process and an environment of its own

_VLLM = """
import json, sys, time
from vllm import LLM, SamplingParams
job = json.load(sys.stdin)
model = LLM(job["model"], dtype="float32", max_model_len=2048, max_num_seqs=32, enable_prefix_caching=True)
def generated(prompts, length):
    rule = SamplingParams(temperature=0, max_tokens=length, ignore_eos=True)
    result = model.generate([{"prompt_token_ids": ids} for ids in prompts], rule, use_tqdm=False)
    return [list(each.outputs[0].token_ids) for each in result]
generated([[5 + n, 6, 7, 8] for n in range(8)], 4)
began = time.perf_counter()
if job["kind"] == "single":
    sampled = generated(job["prompts"], job["sampled"])
else:
    batch, sampled = [list(job["system"]) for _ in job["seen"]], [[] for _ in job["seen"]]
    for turn in range(len(job["seen"][0])):
        batch = [ids + seen[turn] for ids, seen in zip(batch, job["seen"])]
        replies = generated(batch, job["sampled"])
        batch = [ids + reply for ids, reply in zip(batch, replies)]
        sampled = [ids + reply for ids, reply in zip(sampled, replies)]
print("result " + json.dumps([time.perf_counter() - began, sampled]))
"""


def vllm(model: Path, job: dict[str, Any]) -> TimedRun | None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    venv = Path(os.environ.get("GAMETAPE_VLLM") or cache / "gametape" / "vllm")
    if not (venv / ".ready").exists():
        print("vLLM takes no part: run scripts/setup-vllm.sh", file=sys.stderr)
        return None
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_HOST_IP": "127.0.0.1"}
    process = subprocess.Popen(
        [venv / "bin" / "python", "-c", _VLLM],
        env=os.environ | quiet | {"VLLM_CPU_KVCACHE_SPACE": "4"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(json.dumps({"model": str(model), **job}), timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"vLLM has not answered within {PATIENCE} s and takes no part", file=sys.stderr)
        return None
    line = next((line for line in out.splitlines() if line.startswith("result ")), None)
    if line is None:
        print(f"vLLM ended with {process.returncode} and no answer, and takes no part", file=sys.stderr)
        return None
    seconds, sampled = json.loads(line.removeprefix("result "))
    return seconds, sampled


# what the numbers are measured against


def floor(network: Any) -> dict[str, float]:
    """Tokens per second if a step of a full batch took no longer than its matrix products, in either layout."""
    weights = [module.weight.data for module in network.modules() if isinstance(module, torch.nn.Linear)]
    speeds = {}
    for kind in (PlainLinear, PackedLinear):
        products = [(kind(weight, None), weight.shape[1]) for weight in weights]
        for rows in (ROLLOUTS, REQUESTS):
            inputs = {width: torch.randn(rows, width) for _, width in products}
            times = []
            for _ in range(5):
                began = time.perf_counter()
                for product, width in products:
                    product(inputs[width])
                times.append(time.perf_counter() - began)
            speeds[f"{kind.__name__.lower()}_batch_{rows}"] = round(rows / min(times), 1)
    return speeds


def mismatch(network: Any, prompts: list[Ids]) -> dict[str, float]:
    """How far log-probabilities at temperature 1 are from those of a plain forward of the whole sequence."""

    async def sampled() -> list[Generation]:
        engine = build_engine(network)
        assert engine is not None
        requests = [
            asked(ids, SAMPLED, n).model_copy(update={"sampling": Sampling(seed=n)}) for n, ids in enumerate(prompts)
        ]
        result = await asyncio.gather(*map(engine.generate, requests))
        await engine.close()
        return result

    differences = []
    for prompt, result in zip(prompts, asyncio.run(sampled()), strict=True):
        ids = torch.tensor([prompt + result.completion_ids])
        with torch.inference_mode():
            logits_TV = network(ids, logits_to_keep=SAMPLED + 1).logits[0, :-1].float()
        trainer_T = logits_TV.log_softmax(-1).gather(1, ids[0, -SAMPLED:, None])[:, 0]
        differences.append(trainer_T - torch.tensor(result.logprobs))
    difference_N = torch.cat(differences)
    return {
        "tokens": len(difference_N),
        "mean": float(difference_N.abs().mean()),
        "max": float(difference_N.abs().max()),
        "smallest_ratio": float(difference_N.exp().min()),
        "largest_ratio": float(difference_N.exp().max()),
    }


if __name__ == "__main__":
    main()
