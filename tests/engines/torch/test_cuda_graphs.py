"""Rounds of recorded steps, against the same steps launched one by one."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gametape.engines.torch.attention.triton_decode import AttentionTiling
from gametape.engines.torch.cuda_graphs import DecodeGraphs, padded_size
from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep, SumOrder
from gametape.engines.torch.decode_rounds import DecodeRow, DrawnTokens
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.kv_blocks import BlockPool

on_a_gpu = pytest.mark.skipif(DEVICE.type != "cuda", reason="graphs are recorded on a GPU")


def test_a_batch_runs_in_the_smallest_size_that_holds_it() -> None:
    assert [padded_size(count) for count in (1, 2, 3, 33, 64, 65, 80, 81, 130, 257, 500)] == [
        *(1, 2, 4, 64, 64, 80, 80, 96, 160, 320, 512)
    ]
    assert padded_size(290, most=300) == 300
    assert all(padded_size(count) >= count for count in range(1, 600))


def _step() -> DecodeStep:
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 32, "vocab_size": 500}
    module = LlamaForCausalLM(LlamaConfig(**shape, num_attention_heads=4, num_key_value_heads=2)).to(DEVICE)
    for parameter in module.parameters():
        parameter.data.mul_(3)
    spec = read_decoder_spec(module.config)
    assert spec is not None
    pool = BlockPool(spec, 64, 4, DEVICE, torch.float32)
    pool.keys_LBTGD.zero_()
    pool.values_LBTGD.zero_()
    return DecodeStep(
        Decoder(module, spec),
        pool,
        BufferSizes(rows=5, context=40, steps=8, stops=2),
        SumOrder(AttentionTiling(split=16, tile=16), down_parts=2),
    )


def _lines(limit: int, stops: tuple[int, ...] = ()) -> list[DecodeRow]:
    return [
        DecodeRow(7 + row, 3 * row, list(range(12 * row, 12 * row + 10)), limit, row, stop_ids=stops)
        for row in range(5)
    ]


@on_a_gpu
def test_rounds_that_go_on_draw_what_one_by_one_is_drawn() -> None:
    graphs = DecodeGraphs(_step())
    graphs.start(_lines(20), 8)
    graphs.continue_round(8)
    parts = [graphs.finish()]
    graphs.continue_round(8)
    parts += [graphs.finish(), graphs.finish()]
    together = [[token for part in parts for token in part[row].ids] for row in range(5)]
    assert [len(ids) for ids in together] == [20] * 5

    again = DecodeGraphs(_step())
    singly: list[list[int]] = [[] for _ in range(5)]
    for number in range(20):
        lines = [
            DecodeRow((singly[row] or [line.token])[-1], line.length + number, line.blocks, 1, line.seed)
            for row, line in enumerate(_lines(20))
        ]
        again.start(lines, 1)
        for ids, drawn in zip(singly, again.finish(), strict=True):
            ids.extend(drawn.ids)
    assert singly == together


@on_a_gpu
def test_a_stop_token_ends_a_line_within_a_round_and_the_others_go_on() -> None:
    graphs = DecodeGraphs(_step())
    graphs.start(_lines(8), 8)
    free = graphs.finish()
    stop = free[2].ids[3]
    graphs = DecodeGraphs(_step())
    graphs.start(_lines(8, (stop,)), 8)
    for before, after in zip(free, graphs.finish(), strict=True):
        end = before.ids.index(stop) + 1 if stop in before.ids else 8
        assert after == DrawnTokens(before.ids[:end], before.logprobs[:end])


@on_a_gpu
def test_rounds_that_cannot_be_are_refused() -> None:
    graphs = DecodeGraphs(_step())
    with pytest.raises(ValueError, match="no round"):
        graphs.finish()
    with pytest.raises(ValueError, match="at most 40 tokens"):
        graphs.start(_lines(39), 8)
    graphs.start(_lines(8), 2)
    with pytest.raises(ValueError, match="not been finished"):
        graphs.start(_lines(8), 2)
