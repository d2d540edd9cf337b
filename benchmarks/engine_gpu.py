"""The embedded engine's decoding on one GPU: right, how far from the trainer, how fast, and where the time goes.

    python benchmarks/engine_gpu.py [--model DIRECTORY] [--out FILE] [--part right|fast|all]

Needs torch, triton and transformers alone. Without a directory of weights the network is SmolLM2-135M in shape, with
random weights: the speed is the same, and it can be checked against transformers all the same. Prints a summary and
writes everything, as JSON, into the file.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import transformers
import triton
from torch import Tensor

from gametape.engines.torch.attention.reference import plan
from gametape.engines.torch.attention.seam import Span
from gametape.engines.torch.blocks import BlockPool
from gametape.engines.torch.cuda_graphs import DecodeGraphs, Line
from gametape.engines.torch.cuda_step import DecodeStep, Room
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.family import spec_of

DEVICE = torch.device("cuda")
RESULTS = Path(__file__).parent / "results" / "engine_gpu.json"
SHAPE = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
}
TEXT = Path(__file__).parents[1] / "ARCHITECTURE.md"
BLOCK = 16
ROUND = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", choices=["right", "fast", "all"], default="all")
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
    if arguments.part != "fast":
        report["float32"] = right(network(arguments.model, torch.float32), arguments.model)
        print("float32", json.dumps(report["float32"], indent=1), flush=True)
        report["bfloat16"] = right(network(arguments.model, torch.bfloat16), arguments.model)
        print("bfloat16", json.dumps(report["bfloat16"], indent=1), flush=True)
    if arguments.part != "right":
        report |= fast(network(arguments.model, torch.bfloat16))
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


def network(directory: Path | None, dtype: torch.dtype) -> Any:
    """The weights, or random ones large enough that tokens differ in likelihood as a trained network's do."""
    if directory:
        return transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).to(DEVICE).eval()
    torch.manual_seed(0)
    with DEVICE:
        module = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).eval()
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            parameter.data.mul_(2 if "embed" in name else 1.5)
    return module.to(dtype)


class Bench:
    """A network with a pool of blocks and its graphs."""

    def __init__(self, module: Any, rows: int, context: int) -> None:
        spec = spec_of(module.config)
        assert spec is not None
        self.decoder = Decoder(module, spec)
        self.per_row = -(-context // BLOCK)
        self.pool = BlockPool(spec, rows * self.per_row, BLOCK, DEVICE, self.decoder.dtype)
        self.step = DecodeStep(self.decoder, self.pool, Room(rows=rows, context=context, steps=ROUND))
        self.graphs = DecodeGraphs(self.step)
        for pool in (self.pool.keys_LBTGD, self.pool.values_LBTGD):
            for layer in pool:
                layer.normal_()
        # A row's blocks lie apart, as they do in a pool that has been in use.
        self.blocks = [[row + number * rows for number in range(self.per_row)] for row in range(rows)]

    def prefill(self, row: int, ids: list[int]) -> None:
        attend = plan(self.pool, [Span(0, len(ids), 0, self.blocks[row])])
        self.decoder.forward(torch.tensor(ids, device=DEVICE), torch.arange(len(ids), device=DEVICE), attend)

    def decode(
        self, prompts: list[list[int]], count: int, temperature: float, company: int = 0
    ) -> tuple[list[list[int]], Tensor]:
        """Tokens drawn after each prompt, and their log-probabilities [rows, count], beside `company` other rows."""
        for row, ids in enumerate(prompts):
            self.prefill(row, ids[:-1])
        sequences = [list(ids) for ids in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        others = range(len(prompts), len(prompts) + company)
        for done in range(0, count, ROUND):
            lines = [
                Line(ids[-1], len(ids) - 1, self.blocks[row], ROUND, seed=row, temperature=temperature)
                for row, ids in enumerate(sequences)
            ]
            lines += [Line(7, 50 + row % 99 + done, self.blocks[row], ROUND, seed=row) for row in others]
            self.graphs.start(lines, ROUND)
            for row, drawn in enumerate(self.graphs.finish()[: len(prompts)]):
                sequences[row] += drawn.ids
                logprobs[row] += drawn.logprobs
        return [ids[len(prompt) :] for ids, prompt in zip(sequences, prompts, strict=True)], torch.tensor(logprobs)


def right(module: Any, directory: Path | None, count: int = 64) -> dict[str, Any]:
    """Greedy and sampled tokens of the graphs against plain forwards of the whole sequences."""
    prompts = made_prompts(directory, groups=6, size=8)
    bench = Bench(module, 400, 320)
    found: dict[str, Any] = {}
    for name, temperature in (("greedy", 0.0), ("sampled", 1.0)):
        drawn, own_NT = bench.decode(prompts, count, temperature)
        alone_NT, likeliest_NT = plain(module, prompts, drawn, 1)
        batched_NT, _ = plain(module, prompts, drawn, 16)
        exact_NT, _ = plain(module, prompts, drawn, 1, wide_head=True)
        stepped_NT, stepped_likeliest_NT = stepped(module, prompts, drawn, 8)
        drawn_NT = torch.tensor(drawn)
        found[name] = {
            "tokens": drawn_NT.numel(),
            "engine - plain": distance(own_NT, alone_NT),
            "engine - plain with float32 logits": distance(own_NT, exact_NT),
            "plain in batches of 16 - plain": distance(batched_NT, alone_NT),
            "plain token by token in batches of 8 - plain": distance(stepped_NT, alone_NT),
        }
        if temperature == 0:
            found[name]["likeliest of plain"] = share(drawn_NT == likeliest_NT)
            found[name]["plain token by token: likeliest of plain"] = share(stepped_likeliest_NT == likeliest_NT)
    for company in (0, 100, 390):
        again, again_NT = bench.decode(prompts[:5], count, 1.0, company)
        found[f"as in a batch of 48, among {company} others"] = {
            "ids": again == drawn[:5],
            "logprobs to the last bit": bool(torch.equal(again_NT, own_NT[:5])),
        }
    return found


def made_prompts(directory: Path | None, groups: int, size: int) -> list[list[int]]:
    """Groups of one length each: stretches of a text where there is a tokenizer, else random tokens."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(16, 200, (groups,), generator=generator).tolist()
    if directory is None:
        return [
            torch.randint(1000, 40000, (each,), generator=generator).tolist() for each in lengths for _ in range(size)
        ]
    text = transformers.AutoTokenizer.from_pretrained(directory)(TEXT.read_text())["input_ids"]
    starts = torch.randint(len(text) - 200, (groups * size,), generator=generator).tolist()
    return [text[start : start + lengths[number // size]] for number, start in enumerate(starts)]


def stepped(module: Any, prompts: list[list[int]], drawn: list[list[int]], batch: int) -> tuple[Tensor, Tensor]:
    """As `plain`, by transformers' own decoding with its cache: what the network disagrees with itself."""
    logprobs, likeliest = [], []
    for start in range(0, len(prompts), batch):
        given = torch.tensor(drawn[start : start + batch], device=DEVICE)
        logp_columns = []
        cache = transformers.DynamicCache(config=module.config)
        ids = torch.tensor(prompts[start : start + batch], device=DEVICE)
        with torch.no_grad():
            for at in range(given.shape[1]):
                logits_BV = module(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
                logp_columns.append(logits_BV.float().log_softmax(-1))
                ids = given[:, at : at + 1]
        logp_BTV = torch.stack(logp_columns, 1)
        logprobs.append(logp_BTV.gather(2, given[..., None])[..., 0].cpu())
        likeliest.append(logp_BTV.argmax(-1).cpu())
    return torch.cat(logprobs), torch.cat(likeliest)


def plain(
    module: Any, prompts: list[list[int]], drawn: list[list[int]], batch: int, wide_head: bool = False
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of drawn tokens, and the likeliest ones, by a forward of transformers over whole sequences."""
    logprobs, likeliest = [], []
    for start in range(0, len(prompts), batch):
        wholes = [p + d for p, d in zip(prompts[start : start + batch], drawn[start : start + batch], strict=True)]
        longest = max(map(len, wholes))
        ids = torch.tensor([whole + [0] * (longest - len(whole)) for whole in wholes], device=DEVICE)
        mask = torch.tensor([[1] * len(whole) + [0] * (longest - len(whole)) for whole in wholes], device=DEVICE)
        with torch.no_grad():
            hidden = module.model(ids, attention_mask=mask).last_hidden_state
            for at, whole in enumerate(wholes):
                count = len(drawn[start + at])
                rows_TE = hidden[at, len(whole) - count - 1 : len(whole) - 1]
                head_VE = module.lm_head.weight
                logits_TV = rows_TE.float() @ head_VE.float().T if wide_head else (rows_TE @ head_VE.T).float()
                logp_TV = logits_TV.log_softmax(-1)
                chosen_T = torch.tensor(whole[-count:], device=DEVICE)
                logprobs.append(logp_TV.gather(1, chosen_T[:, None])[:, 0].cpu())
                likeliest.append(logp_TV.argmax(-1).cpu())
    return torch.stack(logprobs), torch.stack(likeliest)


def distance(one_NT: Tensor, two_NT: Tensor) -> dict[str, float]:
    """|difference| of log-probabilities, and importance ratios of tokens and of whole rows."""
    difference_NT = two_NT.double() - one_NT.double()
    ratios_NT = difference_NT.exp()
    return {
        "mean": float(difference_NT.abs().mean()),
        "max": float(difference_NT.abs().max()),
        "ratio min": float(ratios_NT.min()),
        "ratio max": float(ratios_NT.max()),
        "row ratio std": float(difference_NT.sum(1).std()),
    }


def share(equal: Tensor) -> float:
    return float(equal.float().mean())


def fast(module: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"copy, TB/s": copy_bandwidth(), "decode": [], "variants": {}}
    print("copy, TB/s", found["copy, TB/s"], flush=True)
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
        for rows in (512, 256, 128, 64, 8, 1):
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
    for prompt in (16, 224):
        found[f"transformers.generate after {prompt} tokens"] = generate(module, 512, prompt, 64)
        print(f"generate after {prompt}", found[f"transformers.generate after {prompt} tokens"], flush=True)
    return found


def copy_bandwidth() -> float:
    """Bytes read and written by a large copy: what memory gives in practice."""
    source = torch.randint(255, (1 << 32,), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    milliseconds = triton.testing.do_bench(lambda: target.copy_(source), return_mode="median")
    return 2 * source.numel() / milliseconds / 1e9


def throughput(
    bench: Bench, rows: int, context: int, steps: int = ROUND, waiting: bool = False, **wish: Any
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
                    Line(9 + row, start, bench.blocks[row], context + 32 - start, row, **wish) for row in range(rows)
                ]
                bench.graphs.start(lines, steps)
            if not waiting and number + 1 < len(starts):
                bench.graphs.go_on(steps)
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
    """Microseconds of a step by kernel. Products are told apart by what ran before them.

    A kernel begins while the one before it ends, and then waits for it. What is counted is from there to its own end,
    so that the parts add up to the step.
    """
    lines = [Line(100, context - ROUND // 2, bench.blocks[row], ROUND, seed=row) for row in range(rows)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        bench.graphs.start(lines, ROUND)
        bench.graphs.finish()
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]
    events = sorted((each for each in events if each["name"].startswith("_")), key=lambda each: float(each["ts"]))
    times: dict[str, list[float]] = defaultdict(list)
    before = ""
    ended = float(events[0]["ts"])
    after = {"_attend": "output", "_join": "output", "_gate": "down"}
    for event in events:
        name = event["name"]
        label = f"_project: {after.get(before, 'qkv')}" if name == "_project" else name
        end = float(event["ts"]) + float(event["dur"])
        times[label].append(end - ended)
        before, ended = name, end
    table = [
        {"kernel": name, "us a step": sum(spent) / ROUND, "launches a step": len(spent) / ROUND}
        for name, spent in times.items()
    ]
    table.sort(key=lambda line: -float(line["us a step"]))
    return [*table, {"kernel": "whole step", "us a step": sum(map(sum, times.values())) / ROUND}]


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
