"""The embedded engine on a GPU beside what memory allows, for networks of several shapes; parts of `engine_gpu.py`.

Weights are random: speed and memory need no others.
"""

import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from engine_profile import kernel_table, profiled
from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.attention import reference
from gametape.engines.torch.build import BLOCK_SIZE
from gametape.engines.torch.cuda_forward import CudaForward
from gametape.engines.torch.cuda_graphs import DecodeGraphs
from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep
from gametape.engines.torch.cuda_tuner import StepTuner, launch_milliseconds
from gametape.engines.torch.decode_rounds import DecodeRow
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.stepper import EngineLimits, Stepper

DEVICE = torch.device("cuda")
ROUND = 16
_LLAMA = {"rope_parameters": {"rope_type": "default", "rope_theta": 100000.0}, "max_position_embeddings": 8192}
CONFIGS: dict[str, dict[str, Any]] = {
    "135m": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        **_LLAMA,
    },
    "0.6b": {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
        "max_position_embeddings": 8192,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": False,
        "max_position_embeddings": 8192,
    },
}


@dataclass(frozen=True)
class Field:
    """So many slots, each with so many new tokens after a prompt."""

    slots: int
    prompt: int
    new: int


FIELDS = {"135m": Field(512, 128, 256), "0.6b": Field(256, 512, 128), "8b": Field(128, 512, 128)}


def network(shape: str, dtype: torch.dtype = torch.bfloat16) -> Any:
    """With weights large enough that tokens differ in likelihood as a trained network's do."""
    torch.manual_seed(0)
    kinds: tuple[Any, Any] = (transformers.LlamaConfig, transformers.LlamaForCausalLM)
    if shape != "135m":
        kinds = (transformers.Qwen3Config, transformers.Qwen3ForCausalLM)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with DEVICE:
            module = kinds[1](kinds[0](**CONFIGS[shape])).eval()
    finally:
        torch.set_default_dtype(before)
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            parameter.data.mul_(2 if "embed" in name else 1.5)
    return module


class Parts:
    """An engine's parts, made as `build_engine` makes them, each within reach."""

    def __init__(self, module: Any, slots: int, kv_tokens: int, context: int) -> None:
        spec = read_decoder_spec(module.config)
        assert spec is not None
        self.decoder = Decoder(module, spec)
        blocks = -(-kv_tokens // BLOCK_SIZE)
        self.pool = BlockPool(spec, blocks, BLOCK_SIZE, self.decoder.device, self.decoder.dtype)
        self.step = DecodeStep(self.decoder, self.pool, BufferSizes(rows=slots, context=context))
        self.tuner = StepTuner(self.step)
        self.graphs = DecodeGraphs(self.step, self.tuner.prepare)

    def engine(self) -> TorchEngine:
        limits = EngineLimits(max_sequences=self.step.sizes.rows, token_budget=8192)
        forward = CudaForward(self.decoder, self.pool)
        return TorchEngine(Stepper(self.decoder, self.pool, reference.plan, limits, self.graphs, forward))


def rows(shapes: Sequence[str], bytes_a_second: float) -> dict[str, Any]:
    """Tokens a second and the share of what memory allows: weights and live keys and values read once a step."""
    found: dict[str, Any] = {}
    for shape in shapes:
        field = FIELDS[shape]
        module = network(shape)
        parts = Parts(module, field.slots, 2 * field.slots * (field.prompt + field.new + 64), 4096)
        context = field.prompt + field.new // 2
        least = step_bytes(parts.decoder, field.slots, context) / bytes_a_second
        engine = asyncio.run(_through_engine(parts, field))
        graphs = _graphs_alone(parts, field.slots, context)
        for figures in (engine, graphs):
            figures["share of the bandwidth limit"] = least / (figures["ms a step"] / 1e3)
        found[shape] = {
            "field": f"{field.slots} slots, {field.new} tokens after {field.prompt}",
            "least ms a step": least * 1e3,
            "engine": engine,
            "graphs alone": graphs,
            "order": str(parts.tuner.choices.order),
            "tilings": {size: str(tilings) for size, tilings in parts.tuner.choices.tilings.items()},
            "kernels": _profile(parts, field.slots, context),
        }
        print(shape, {name: value for name, value in found[shape].items() if name != "kernels"}, flush=True)
        for line in found[shape]["kernels"]:
            print("   ", line, flush=True)
        del parts, module
        torch.cuda.empty_cache()
    return found


def step_bytes(decoder: Decoder, slots: int, context: int) -> int:
    """What a decode step has to read: the weights of all products, and the keys and values of the live tokens."""
    spec = decoder.spec
    weights = sum(
        weight.nbytes
        for layer in decoder.layers
        for weight in (layer.qkv_PE, layer.output_EP, layer.gate_up_PE, layer.down_EI)
    )
    kv = slots * context * spec.layers * 2 * spec.kv_heads * spec.head_dim * decoder.dtype.itemsize
    return weights + decoder.head_VE.nbytes + kv


async def _through_engine(parts: Parts, field: Field) -> dict[str, float]:
    """From requests to generations; what one token after each prompt takes is measured and taken off."""
    engine = parts.engine()

    async def seconds(new: int, seed: int) -> float:
        """With prompts that the engine has not seen."""
        dice = random.Random(seed)
        requests = [
            request([dice.randrange(1000, 40000) for _ in range(field.prompt)], new, row) for row in range(field.slots)
        ]
        started = time.perf_counter()
        generations = await asyncio.gather(*(engine.generate(each) for each in requests))
        spent = time.perf_counter() - started
        assert sum(len(each.completion_ids) for each in generations) == field.slots * new
        return spent

    try:
        firsts, wholes = [], []
        for number in range(4):
            firsts.append(await seconds(1, number))
            wholes.append(await seconds(field.new + 1, number + 100))
    finally:
        await engine.close()
    first, whole = statistics.median(firsts[1:]), statistics.median(wholes[1:])
    return {
        "tokens a second": field.slots * field.new / (whole - first),
        "ms a step": (whole - first) / field.new * 1e3,
        "prompt tokens a second": field.slots * field.prompt / first,
        "tokens a second with prompts": field.slots * (field.new + 1) / whole,
    }


def request(prompt: list[int], new: int, seed: int) -> GenerateRequest:
    return GenerateRequest(request_id=str(seed), prompt_ids=prompt, max_tokens=new, sampling=Sampling(seed=seed))


def _lines(slots: int, start: int, new: int) -> list[DecodeRow]:
    """Rows whose blocks lie apart, as they do in a pool that has been in use."""
    per_row = -(-(start + new) // BLOCK_SIZE)
    blocks = [[row + number * slots for number in range(per_row)] for row in range(slots)]
    return [DecodeRow(9 + row, start, blocks[row], new, row) for row in range(slots)]


def _graphs_alone(parts: Parts, slots: int, context: int) -> dict[str, float]:
    """Four rounds around `context`, the host's reads included."""

    def run() -> None:
        parts.graphs.start(_lines(slots, context - 2 * ROUND, 4 * ROUND), ROUND)
        for number in range(4):
            if number < 3:
                parts.graphs.continue_round(ROUND)
            assert len(parts.graphs.finish()) == slots

    run()
    took = []
    for _ in range(5):
        started = time.perf_counter()
        run()
        took.append((time.perf_counter() - started) / (4 * ROUND))
    wall = statistics.median(took)
    return {"tokens a second": slots / wall, "ms a step": wall * 1e3}


def _profile(parts: Parts, slots: int, context: int) -> list[dict[str, Any]]:
    def run() -> None:
        parts.graphs.start(_lines(slots, context - ROUND // 2, ROUND), ROUND)
        parts.graphs.finish()

    return kernel_table(profiled(run), ROUND)


def choices(shapes: Sequence[str]) -> dict[str, Any]:
    """What is chosen where nothing is known yet, how long it takes, and what the library's products would take."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        for shape in shapes:
            slots = FIELDS[shape].slots
            parts = Parts(network(shape), slots, slots * 600, 4096)
            for size in sorted({64, 128, slots}):
                parts.tuner.prepare(size)
            library = {size: _library_products(parts.decoder, size) for size in sorted({64, 128, slots})}
            found[shape] = {
                "seconds": parts.tuner.seconds,
                "order": str(parts.tuner.choices.order),
                "tilings": {size: str(tilings) for size, tilings in parts.tuner.choices.tilings.items()},
                "trials": [{"part": each.part, "rows": each.rows, **each.milliseconds} for each in parts.tuner.trials],
                "library, ms": library,
            }
            print(shape, f"{parts.tuner.seconds:.1f} s", found[shape]["order"], flush=True)
            for trial in found[shape]["trials"]:
                print("   ", trial, flush=True)
            print("    library, ms, all layers", library, flush=True)
            del parts
            torch.cuda.empty_cache()
    return found


def _library_products(decoder: Decoder, size: int) -> dict[str, float]:
    """Milliseconds of all layers, products alone: no bias, gate, residual sum, maxima."""
    products = {
        "qkv": [layer.qkv_PE for layer in decoder.layers],
        "output": [layer.output_EP for layer in decoder.layers],
        "gate": [layer.gate_up_PE for layer in decoder.layers],
        "down": [layer.down_EI for layer in decoder.layers],
        "head": [decoder.head_VE],
    }
    found = {}
    for name, weights in products.items():
        x_NE = torch.randn(size, weights[0].shape[1], device=DEVICE, dtype=decoder.dtype)
        out_NF = torch.empty(size, len(weights[0]), device=DEVICE, dtype=decoder.dtype)

        def launch(
            weights: list[torch.Tensor] = weights, x_NE: torch.Tensor = x_NE, out_NF: torch.Tensor = out_NF
        ) -> None:
            for weight in weights:
                torch.mm(x_NE, weight.t(), out=out_NF)

        with torch.inference_mode():
            found[name] = launch_milliseconds(launch)
    return found
