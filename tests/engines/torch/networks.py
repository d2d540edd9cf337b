"""Tiny networks of each family, the plain forward to compare with, and an engine's core without its thread."""

from copy import deepcopy
from functools import cache
from itertools import count, product

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.attention import cpu
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.jobs import GenerateJob
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.sampler import sample_tokens, uniform
from gametape.engines.torch.stepper import EngineLimits, Stepper

VOCABULARY = 97
GREEDY = Sampling(temperature=0)
_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
    "eos_token_id": None,
}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 512}
_MADE = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, tie_word_embeddings=False)),
    "llama-wide": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, head_dim=16)),
    "llama-tied": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, tie_word_embeddings=True)),
    "llama-biased": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, attention_bias=True, mlp_bias=True)),
    "llama-yarn": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, rope_parameters=_YARN)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**_SHAPE, sliding_window=None)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**_SHAPE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**_SHAPE, head_dim=16)),
}
FAMILIES = list(_MADE)


def network(family="llama", seed=0):
    """With biases and norms that are not what they start as, so that leaving one out shows."""
    torch.manual_seed(seed)
    made = _MADE[family]().float().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return made.requires_grad_(False)


@cache
def plain(family="llama", seed=0):
    """A network that nobody else touches."""
    return network(family, seed)


def stepper(module, tokens=1024, block=4, planner=cpu.plan, **limits):
    spec = read_decoder_spec(module.config)
    decoder = Decoder(module, spec)
    pool = BlockPool(spec, tokens // block, block, decoder.device, decoder.dtype)
    return Stepper(decoder, pool, planner, EngineLimits(**limits))


def plain_logits(module, ids):
    with torch.no_grad():
        return module(torch.tensor([ids])).logits[0].float()


_arrivals = count()


def ask(core, prompt, max_tokens=8, sampling=GREEDY, stops=()):
    """Add a job; what came of it is appended to the list returned."""
    results = []
    request = GenerateRequest(
        request_id="r", prompt_ids=prompt, max_tokens=max_tokens, sampling=sampling, stop_ids=list(stops)
    )
    job = GenerateJob(request, results.append, next(_arrivals))
    core.add(job)
    return job, results


def run(core, most=10_000):
    for _ in range(most):
        if not core.busy:
            return
        core.step()
    raise AssertionError(f"not done after {most} steps")


def check(generation, prompt, sampling, modules, tolerance=1e-4):
    """Every token is what the plain forward of the whole sequence would have drawn, by the weights it names.

    Both compute in float32, in different orders: where the random number or top p falls within 1e-5 of the border
    between two tokens, or two tokens at the cut of top p are as likely within 1e-5, either is right.
    """
    ids = [*prompt, *generation.completion_ids]
    for version in set(generation.policy_versions):
        logits = plain_logits(modules[version], ids)[len(prompt) - 1 : -1]
        positions = torch.arange(len(prompt), len(ids))
        seeds = torch.full_like(positions, (sampling.seed or 0) % (1 << 63))
        numbers = uniform(seeds, positions)
        near = []
        for by, cut in product((0, -1e-5, 1e-5), (0, -1e-5, 1e-5) if sampling.top_p < 1 else (0,)):
            rule = sampling.model_copy(update={"top_p": sampling.top_p + cut})
            near.append(sample_tokens(logits, [rule] * len(logits), (numbers + by).clamp(0, 1 - 1e-9)))
        for tie in range(8 if sampling.top_p < 1 else 0):
            noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(tie)) * 1e-5
            near.append(sample_tokens(logits + noise, [sampling] * len(logits), numbers))
        for at, (token, own) in enumerate(zip(generation.completion_ids, generation.logprobs, strict=True)):
            if generation.policy_versions[at] == version:
                found = [(int(drawn[at]), float(logprobs[at])) for drawn, logprobs in near]
                assert any(drawn == token and abs(logprob - own) < tolerance for drawn, logprob in found), (
                    at,
                    (token, own),
                    found,
                )


def copy_of(module):
    return deepcopy(module)
