"""Engines whose sequences decode in rounds: by recorded steps where there is a GPU, else by a plain stand-in."""

from collections import deque

import torch

from gametape.core.messages import Sampling
from gametape.engines.torch.attention import cpu
from gametape.engines.torch.attention.interface import SequenceSpan
from gametape.engines.torch.decode_rounds import DrawnTokens
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.sampler import sample_tokens, uniform
from gametape.engines.torch.stepper import EngineLimits, Stepper

ON_GPU = torch.cuda.is_available()
FAMILIES = ["llama-wide", "qwen3"]
"""With heads as wide as the kernels need them."""


def stepper_in_rounds(module, tokens=1024, block=4, longest=1 << 20, **limits):
    """As `networks.stepper`; rounds are for sequences of at most `longest` tokens."""
    spec = read_decoder_spec(module.config)
    decoder = Decoder(module.to("cuda" if ON_GPU else "cpu"), spec)
    pool = BlockPool(spec, tokens // block, block, decoder.device, decoder.dtype)
    if not ON_GPU:
        return Stepper(decoder, pool, cpu.plan, EngineLimits(**limits), PlainRounds(decoder, pool, longest))
    from gametape.engines.torch.cuda_forward import CudaForward
    from gametape.engines.torch.cuda_graphs import DecodeGraphs
    from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep

    made = EngineLimits(**limits)
    room = BufferSizes(rows=made.max_sequences, context=min(longest, tokens), stops=2)
    graphs = DecodeGraphs(DecodeStep(decoder, pool, room))
    return Stepper(decoder, pool, cpu.plan, made, graphs, CudaForward(decoder, pool))


class PlainRounds:
    """What `DecodeGraphs` promises, one plain step after the other, as soon as a round is sent."""

    max_stop_ids = 2

    def __init__(self, decoder, pool, longest):
        self.max_length = longest
        self._decoder, self._pool = decoder, pool
        self._sent = deque()

    def start(self, lines, steps):
        assert not self._sent
        assert all(line.length + line.max_new_tokens <= len(line.blocks) * self._pool.block_size for line in lines)
        self._lines = [(line, list(line.blocks)) for line in lines]
        self._drawn = [[] for _ in lines]
        self._send(steps)

    def continue_round(self, steps):
        assert len(self._sent) == 1
        self._send(steps)

    def finish(self):
        return self._sent.popleft()

    def _send(self, steps):
        drawn = [DrawnTokens([], []) for _ in self._lines]
        for _ in range(steps):
            for (line, blocks), own, new in zip(self._lines, self._drawn, drawn, strict=True):
                if len(own) < line.max_new_tokens and not (own and own[-1] in line.stop_ids):
                    token, logprob = self._step(line, blocks, own)
                    own.append(token)
                    new.ids.append(token)
                    new.logprobs.append(logprob)
        self._sent.append(drawn)

    def _step(self, line, blocks, own):
        at = line.length + len(own)
        attend = cpu.plan(self._pool, [SequenceSpan(0, 1, at, blocks)])
        hidden = self._decoder.forward(torch.tensor([own[-1] if own else line.token]), torch.tensor([at]), attend)
        rule = Sampling(temperature=line.temperature, top_k=line.top_k, top_p=line.top_p)
        number = uniform(torch.tensor([line.seed]), torch.tensor([at + 1]))
        token, logprob = sample_tokens(self._decoder.logits(hidden), [rule], number)
        return int(token), float(logprob)
