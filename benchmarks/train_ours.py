"""Our side of `benchmarks/train.py`: prints one JSON object about steps over one of its batches."""

import copy
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import OptimConfig, RLConfig, RunConfig
from gametape.core.token_segments import TokenSegment
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner, map_large_blocks
from gametape.train.losses import rl_loss, ttf_loss
from gametape.train.packing import PackedTokens, TokenNode, pack_nodes
from gametape.train.policy import TrainablePolicy
from gametape.train.policy_module import ForwardOutputs, PolicyModule
from gametape.train.token_logprobs import span_logits, token_logprobs
from train_batch import (
    CASES,
    HINT,
    LEARNING_RATE,
    LENGTH,
    SPAN,
    TARGET,
    Case,
    drawn,
    network_in,
    resident_mb,
    shaped,
    some_ids,
    told,
)

WAYS = ("plain", "packed", "second_forward", "averaged")


def main() -> None:
    what, model, rounds, *rest = sys.argv[1:]
    if what == "ttf":
        print(json.dumps(ways(model, int(rounds), *rest)))
    else:
        print(json.dumps(group_step(CASES[what], Path(model))))


def group_step(case: Case, model: Path) -> dict[str, Any]:
    """Two updates by the trainer's own learner, as `gametape train` makes them; the second is timed."""
    batch, network = drawn(case), network_in(model)
    rl = RLConfig(loss="dr_grpo", clip_low=0.2, clip_high=0.2, normalizer_tokens=case.longest)
    optim = OptimConfig(learning_rate=LEARNING_RATE)
    config = RunConfig(arm="rlvr", tasks="none", rl=rl, optim=optim)
    learner = LocalLearner(TrainablePolicy(network, load_chat_format(model), case.prompt + case.longest, {}), config)
    pairs = zip(batch.completions, batch.advantages, strict=True)
    lines = tuple(TrainSample(_segment(batch.prompt, ids), 0, advantage) for ids, advantage in pairs)
    before_mb = resident_mb("VmRSS")
    norms, seconds = [], 0.0
    for step in range(2):
        start = time.perf_counter()
        update = learner.update(TrainBatch(lines, case.rollouts), step, version=0)
        seconds = time.perf_counter() - start
        norms.append(update.gradient or 0.0)
    return told(batch, seconds, before_mb, norms[0])


def _segment(prompt: list[int], completion: list[int]) -> TokenSegment:
    """A rollout of one turn, whose sampler is not known."""
    ids = [*prompt, *completion]
    mask = [0] * len(prompt) + [1] * len(completion)
    return TokenSegment(ids, mask, [0.0] * len(ids), [-1] * len(ids), mask)


def ways(model: str, rounds: int, device: str = "cpu") -> dict[str, Any]:
    """Seconds of each way to make a step, taken in turns. `shape` in place of a model is one of random weights."""
    map_large_blocks()
    network = (shaped() if model == "shape" else network_in(Path(model))).to(device)
    step = _Target(network)
    for way in WAYS:
        step(way)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else reversed(WAYS):
            _finish(device)
            start = time.perf_counter()
            step(way)
            _finish(device)
            seconds[way].append(round(time.perf_counter() - start, 3))
            print(f"ttf    {way:15} {seconds[way][-1]} s", file=sys.stderr, flush=True)
    return {"seconds": seconds, "peak_mb": round(resident_mb("VmHWM"))}


def _finish(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


class _Target:
    """A step over one long rollout with a target in its middle."""

    def __init__(self, network: Any) -> None:
        self._network, self._average = PolicyModule(network), PolicyModule(copy.deepcopy(network))
        self._optimizer = _optimizer(network)
        batch = drawn(TARGET)
        self._prompt, (self._completion,) = batch.prompt, batch.completions
        self._hint = some_ids(random.Random(1), HINT)
        self._at = LENGTH // 2 - len(self._prompt)

    def __call__(self, way: str) -> None:
        teacher_SV = self._second_forward(way)
        nodes = [TokenNode(self._prompt), TokenNode(self._completion, parent=0)]
        if way == "packed":
            span = self._completion[self._at : self._at + SPAN]
            nodes.append(TokenNode([*self._hint, *span], parent=1, at=self._at, detached=True))
        packed, (hidden_NE, head_VE, _), logp_M = _scored(self._network, nodes)
        loss = rl_loss(logp_M[None], logp_M[None].detach(), [1.0], torch.ones_like(logp_M[None]), "dr_grpo")
        if way != "plain":
            if teacher_SV is None:
                teacher_SV = span_logits(hidden_NE[packed.predecessor_N[packed.rows[2]][HINT:]], head_VE).detach()
            before_S = packed.predecessor_N[packed.rows[1]][self._at : self._at + SPAN]
            loss = loss + 0.1 * ttf_loss(span_logits(hidden_NE[before_S], head_VE), teacher_SV) / SPAN
        _learn(self._network, self._optimizer, loss)
        if way == "averaged":
            with torch.no_grad():
                torch._foreach_lerp_(list(self._average.parameters()), list(self._network.parameters()), 0.01)

    def _second_forward(self, way: str) -> Tensor | None:
        """The teacher's logits of the span, from the whole hinted rollout or up to the end of the span."""
        hinted = [*self._prompt, *self._completion[: self._at], *self._hint, *self._completion[self._at :]]
        first = len(self._prompt) + self._at + HINT
        if way == "second_forward":
            teacher = self._network
        elif way == "averaged":
            teacher, hinted = self._average, hinted[: first + SPAN]
        else:
            return None
        with torch.no_grad():
            hidden_NE, head_VE, _ = teacher(pack_nodes([TokenNode(hinted)]).to(teacher.device))
            return span_logits(hidden_NE[first - 1 : first - 1 + SPAN], head_VE)


def _optimizer(network: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True)


def _scored(network: PolicyModule, nodes: Sequence[TokenNode]) -> tuple[PackedTokens, ForwardOutputs, Tensor]:
    """The packed nodes, what their forward gives, and the log-probs of all completions, one after the other."""
    packed = pack_nodes(nodes).to(network.device)
    outputs = network(packed)
    chosen = [rows for rows, node in zip(packed.rows, nodes, strict=True) if node.parent == 0]
    before_M = torch.cat([packed.predecessor_N[rows] for rows in chosen])
    targets_M = torch.cat([packed.ids_N[rows] for rows in chosen])
    logp_M, _ = token_logprobs(outputs.hidden_NE[before_M], outputs.head_VE, targets_M)
    return packed, outputs, logp_M


def _learn(network: Any, optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return float(norm)


if __name__ == "__main__":
    main()
