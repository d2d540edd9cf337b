"""The embedded engine on one GPU: how far from the trainer, how fast, and where the time goes.

    python benchmarks/engine_gpu.py [--part right|fast|rows|stream|choices|all] [--shapes 135m,0.6b,8b]
                                    [--model DIRECTORY] [--json FILE]

- right: how far log-probabilities are from a plain forward's
- rows: through the engine and by graphs alone, beside what memory allows, for networks of these shapes
- stream: requests of many lengths, more than there are slots
- choices: what is measured to choose the kernels, what is chosen, and how long that takes
- fast: beside `transformers.generate`, and graphs alone at many sizes of batch

Needs torch, triton, transformers and pydantic alone. Without a directory of weights the network is SmolLM2-135M in
shape, with random weights: the speed is the same, and it can be checked against transformers all the same. Prints a
summary and writes everything, as JSON, into the file.
"""

import argparse
import asyncio
import json
import platform
import random
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import transformers
import triton

import engine_shapes
from engine_mismatch import mismatch
from engine_profile import kernel_table, profiled
from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.build import build_engine
from gametape.engines.torch.cuda_graphs import DecodeGraphs
from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep
from gametape.engines.torch.cuda_tuner import StepTuner
from gametape.engines.torch.decode_rounds import DecodeRow
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.stepper import EngineLimits

DEVICE = torch.device("cuda")
RESULTS = Path(__file__).parent / "results" / "engine_gpu.json"
BLOCK = 16
ROUND = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--part", choices=["right", "fast", "rows", "stream", "choices", "all"], default="all")
    parser.add_argument("--shapes", default="135m")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    report: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "weights": "SmolLM2-135M" if arguments.model else "random",
    }
    shapes, part = arguments.shapes.split(","), arguments.part
    if part in {"right", "all"}:
        report["float32"] = mismatch(network(arguments.model, torch.float32), arguments.model, jitter=False)
        print("float32", json.dumps(report["float32"], indent=1), flush=True)
        report["bfloat16"] = mismatch(network(arguments.model, torch.bfloat16), arguments.model, jitter=True)
        print("bfloat16", json.dumps(report["bfloat16"], indent=1), flush=True)
    if part in {"choices", "all"}:
        report["choices"] = engine_shapes.choices(shapes)
    if part in {"rows", "all"}:
        report["copy, TB/s"] = copy_bandwidth()
        report["rows"] = engine_shapes.rows(shapes, report["copy, TB/s"] * 1e12)
    if part in {"stream", "all"}:
        report["stream"] = stream(network(arguments.model, torch.bfloat16))
        print("stream", json.dumps(report["stream"]), flush=True)
    if part in {"fast", "all"}:
        report |= fast(network(arguments.model, torch.bfloat16))
    arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def network(directory: Path | None, dtype: torch.dtype) -> Any:
    """The weights, or random ones large enough that tokens differ in likelihood as a trained network's do."""
    if directory:
        return transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).to(DEVICE).eval()
    return engine_shapes.network("135m", dtype)


class Bench:
    """A network with a pool of blocks and its graphs."""

    def __init__(self, module: Any, rows: int, context: int) -> None:
        spec = read_decoder_spec(module.config)
        assert spec is not None
        self.decoder = Decoder(module, spec)
        self.per_row = -(-context // BLOCK)
        self.pool = BlockPool(spec, rows * self.per_row, BLOCK, DEVICE, self.decoder.dtype)
        self.step = DecodeStep(self.decoder, self.pool, BufferSizes(rows=rows, context=context, steps=ROUND))
        self.graphs = DecodeGraphs(self.step, StepTuner(self.step).prepare)
        for pool in (self.pool.keys_LBTGD, self.pool.values_LBTGD):
            for layer in pool:
                layer.normal_()
        # A row's blocks lie apart, as they do in a pool that has been in use.
        self.blocks = [[row + number * rows for number in range(self.per_row)] for row in range(rows)]


def fast(module: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"copy, TB/s": copy_bandwidth(), "decode": [], "variants": {}}
    print("copy, TB/s", found["copy, TB/s"], flush=True)
    for prompt, count in ((224, 64), (128, 256)):
        name = f"512 slots, {count} tokens after {prompt}"
        found[name] = {
            "engine": engine_decoding(module, 512, prompt, count),
            "transformers.generate": generate(module, 512, prompt, count),
        }
        print(name, json.dumps(found[name]), flush=True)
    bytes_of_weights = 2 * sum(parameter.numel() for parameter in module.parameters())
    variants: dict[str, dict[str, Any]] = {
        "rounds of 8": {"steps": 8},
        "rounds of 16, each started anew": {"waiting": True},
        "rounds of 1, each started anew": {"steps": 1, "waiting": True},
        "greedy": {"temperature": 0.0},
        "top_k 50": {"top_k": 50},
        "top_p 0.95": {"top_p": 0.95},
    }
    for context in (256, 512, 2048):
        bench = Bench(module, 512, context + 64)
        spec = bench.decoder.spec
        for rows in (512, 256, 64, 1):
            figures = throughput(bench, rows, context)
            kv = rows * context * spec.layers * 2 * spec.kv_heads * spec.head_dim * 2
            figures["share of 4.8 TB/s"] = (bytes_of_weights + kv) / 4.8e12 / (figures["ms a step"] / 1e3)
            found["decode"].append(figures)
            print(json.dumps(figures), flush=True)
        if context == 256:
            for name, variant in variants.items():
                found["variants"][name] = throughput(bench, 512, context, **variant)
                print(name, json.dumps(found["variants"][name]), flush=True)
            for rows in (512, 64):
                found[f"kernels, {rows} rows"] = kernels(bench, rows, context)
                for line in found[f"kernels, {rows} rows"]:
                    print(rows, json.dumps(line), flush=True)
        del bench
        torch.cuda.empty_cache()
    return found


def engine_decoding(module: Any, rows: int, prompt: int, count: int) -> dict[str, float]:
    """Through `TorchEngine`, from requests to generations; the prompts' share is measured and taken off."""

    async def run() -> tuple[float, float]:
        engine = opened(module, rows, rows * (prompt + count + 64) * 4)
        try:
            wholes, firsts = [], []
            for number in range(5):
                firsts.append(await seconds(engine, 1, number))
                wholes.append(await seconds(engine, count + 1, number + 100))
            return statistics.median(firsts[1:]), statistics.median(wholes[1:])
        finally:
            await engine.close()

    async def seconds(engine: TorchEngine, new: int, seed: int) -> float:
        """With prompts that the engine has not seen."""
        dice = random.Random(seed)
        requests = [asked([dice.randrange(1000, 40000) for _ in range(prompt)], new, row) for row in range(rows)]
        started = time.perf_counter()
        generations = await asyncio.gather(*(engine.generate(request) for request in requests))
        spent = time.perf_counter() - started
        assert sum(len(each.completion_ids) for each in generations) == rows * new
        return spent

    first, whole = asyncio.run(run())
    return {
        "tokens a second": rows * count / (whole - first),
        "ms a step": (whole - first) / count * 1e3,
        "prompt tokens a second": rows * prompt / first,
        "tokens a second with prompts": rows * (count + 1) / whole,
    }


def stream(module: Any, requests: int = 4096, slots: int = 512) -> dict[str, float]:
    """Requests of many lengths, half of them behind one system prompt, all waiting for a slot from the start."""
    dice = random.Random(0)
    system = [dice.randrange(1000, 40000) for _ in range(200)]
    given = []
    for row in range(requests):
        own = [dice.randrange(1000, 40000) for _ in range(dice.randrange(16, 300))]
        given.append(asked(system + own if row % 2 else own, dice.randrange(16, 400), row))

    async def run() -> dict[str, float]:
        engine = opened(module, slots, slots * 4096)
        try:
            await asyncio.gather(*(engine.generate(request) for request in given[: 2 * slots]))
            before = await engine.stats()
            started = time.perf_counter()
            await asyncio.gather(*(engine.generate(request) for request in given[2 * slots :]))
            spent = time.perf_counter() - started
            after = await engine.stats()
        finally:
            await engine.close()
        sampled = after.sampled_tokens - before.sampled_tokens
        return {
            "tokens a second": sampled / spent,
            "prompt tokens read a second": (after.read_tokens - before.read_tokens - sampled) / spent,
            "tokens cached a second": (after.cached_tokens - before.cached_tokens) / spent,
        }

    return asyncio.run(run())


def opened(module: Any, slots: int, tokens: int) -> TorchEngine:
    engine = build_engine(module, EngineLimits(max_sequences=slots, token_budget=8192), tokens)
    assert engine is not None
    return engine


def asked(prompt: list[int], new: int, seed: int) -> GenerateRequest:
    return GenerateRequest(request_id=str(seed), prompt_ids=prompt, max_tokens=new, sampling=Sampling(seed=seed))


def copy_bandwidth() -> float:
    """Bytes read and written by a large copy: what memory gives in practice."""
    source = torch.randint(255, (1 << 32,), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    milliseconds = triton.testing.do_bench(lambda: target.copy_(source), return_mode="median")
    return 2 * source.numel() / milliseconds / 1e9


def throughput(
    bench: Bench, rows: int, context: int, steps: int = ROUND, waiting: bool = False, **sampling: Any
) -> dict[str, Any]:
    """Rounds whose contexts begin 32 tokens below `context` and end 32 above it: the mean is what is named.

    The host reads what a round drew while the next one runs, or, `waiting`, starts every round anew after it has read.
    """

    def rounds() -> None:
        starts = range(context - 32, context + 32, steps)
        drawn = 0
        for number, start in enumerate(starts):
            if number == 0 or waiting:
                lines = [
                    DecodeRow(9 + row, start, bench.blocks[row], context + 32 - start, row, **sampling)
                    for row in range(rows)
                ]
                bench.graphs.start(lines, steps)
            if not waiting and number + 1 < len(starts):
                bench.graphs.continue_round(steps)
            drawn += sum(len(each.ids) for each in bench.graphs.finish())
        assert drawn == rows * 64

    rounds()
    walls = []
    for _ in range(7):
        started = time.perf_counter()
        rounds()
        walls.append((time.perf_counter() - started) / 64)
    wall = statistics.median(walls)
    return {"rows": rows, "context": context, "tokens a second": rows / wall, "ms a step": wall * 1e3}


def kernels(bench: Bench, rows: int, context: int) -> list[dict[str, Any]]:
    def run() -> None:
        lines = [DecodeRow(100, context - ROUND // 2, bench.blocks[row], ROUND, seed=row) for row in range(rows)]
        bench.graphs.start(lines, ROUND)
        bench.graphs.finish()

    return kernel_table(profiled(run), ROUND)


def generate(module: Any, rows: int, prompt: int, count: int) -> dict[str, float]:
    """transformers' own decoding of the same contexts; the prompt's share is measured and taken off."""
    ids = torch.randint(1000, 40000, (rows, prompt), device=DEVICE)

    def seconds(new: int) -> float:
        torch.cuda.synchronize()
        started = time.perf_counter()
        module.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new,
            eos_token_id=None,
            do_sample=False,
            pad_token_id=0,
        )
        torch.cuda.synchronize()
        return time.perf_counter() - started

    seconds(2)
    first, whole = seconds(1), seconds(count + 1)
    return {"tokens a second": rows * count / (whole - first), "ms a step": (whole - first) / count * 1e3}


if __name__ == "__main__":
    main()
