"""A decode step of our own kernels, against a plain forward of the whole sequence by transformers, in float32."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from gametape.engines.torch.attention.triton_decode import AttentionTiling
from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep, SumOrder
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.kv_blocks import BlockPool

SHAPE = {
    "hidden_size": 48,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 300,
    "tie_word_embeddings": True,
}


@pytest.mark.parametrize(
    ("config", "network"),
    [
        pytest.param(LlamaConfig, LlamaForCausalLM, marks=pytest.mark.slow),
        pytest.param(Qwen2Config, Qwen2ForCausalLM, marks=pytest.mark.slow),
        (Qwen3Config, Qwen3ForCausalLM),
    ],
)
def test_steps_equal_a_plain_forward_of_the_whole_sequence(config: Any, network: Any) -> None:
    torch.manual_seed(0)
    module = network(config(**SHAPE)).eval().to(DEVICE)
    for name, parameter in module.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.data.uniform_(0.5, 1.5)
        else:
            parameter.data.mul_(4)
    spec = read_decoder_spec(module.config)
    assert spec is not None
    decoder = Decoder(module, spec)
    pool = BlockPool(spec, 12, 4, DEVICE, torch.float32)
    step = DecodeStep(
        decoder,
        pool,
        BufferSizes(rows=3, context=32, steps=8, stops=1),
        SumOrder(AttentionTiling(split=8, tile=16), down_parts=2),
    )
    step.tables_NB[:3, :4] = torch.randperm(12).view(3, 4).int().to(DEVICE)

    # Prompts are read by decoding as well, one token a step: rows of other lengths begin later.
    prompts = [torch.randint(300, (length,)).tolist() for length in (6, 3, 5)]
    step.row_sampling.limits_N.fill_(9)
    step.row_sampling.top_p_N.fill_(1)
    sequences: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    for at in range(8):
        for row, prompt in enumerate(prompts):
            start = 6 - len(prompt)
            step.progress.live_N[row] = 1 if at >= start else 0
            if 0 <= at - start < len(prompt):
                step.progress.tokens_N[row] = prompt[at - start]
                sequences[row].append(prompt[at - start])
        step.progress.drawn_N.zero_()
        step.launch(3, splits=2)
        for row, prompt in enumerate(prompts):
            if at - (6 - len(prompt)) >= len(prompt) - 1:
                sequences[row].append(int(step.progress.ids_NS[row, 0]))
                logprobs[row].append(float(step.progress.logprobs_NS[row, 0]))

    for prompt, ids, own in zip(prompts, sequences, logprobs, strict=True):
        assert len(ids) == len(prompt) + 3
        with torch.no_grad():
            logp_TV = module(torch.tensor([ids], device=DEVICE)).logits[0].log_softmax(-1).cpu()
        drawn = ids[len(prompt) :]
        plain_TV = logp_TV[len(prompt) - 1 : -1]
        assert plain_TV.argmax(-1).tolist() == drawn
        assert own == pytest.approx(plain_TV[range(3), drawn].tolist(), abs=1e-4)
