"""What the policy could do, asked again after every update: rollouts of its own that succeeded, scored under the new
weights. Played anew, hundreds would be needed to see that a few points of success are gone; the same tokens show it in
some thirty, for nothing is drawn at random. They are held-out ones: nobody learns from them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainSample

_CONFIDENT = math.log(0.9)
"""Where the policy was less sure than this, another word may have done as well, and rewards go on to move it: only what
it was sure of counts."""
_MIN_SUCCESSES = 8
"""Fewer are flukes of a policy that has nothing to forget yet."""

LogprobScorer = Callable[[Sequence[TrainSample]], list[Tensor]]
"""The log-probabilities of each line's chosen tokens, under the weights of now."""


class ForgettingProbe:
    """Some successes of the best evaluation so far, at most `most`."""

    def __init__(self, scored: LogprobScorer, most: int) -> None:
        self._scored, self._most = scored, most
        self._best = 0.0
        self._kept: list[TrainSample] = []
        self._then: list[Tensor] = []

    def keep_successes(self, successes: Sequence[Sequence[TokenSegment]], rate: float) -> None:
        """Of an evaluation, if it was better than all before. Those whose context was rewritten are left out."""
        whole = [rollout[0] for rollout in successes if len(rollout) == 1][: self._most]
        if rate > self._best and len(whole) >= min(_MIN_SUCCESSES, self._most):
            self._best = rate
            self._kept = [TrainSample(segment, family) for family, segment in enumerate(whole)]
            self._then = self._scored(self._kept)

    def forgotten_share(self) -> float | None:
        """How much of that evaluation's success would be gone: 0.05 says five points."""
        if not self._kept:
            return None
        pairs = zip(self._then, self._scored(self._kept), strict=True)
        return self._best * (1 - sum(_retained(then_T, now_T) for then_T, now_T in pairs) / len(self._kept))

    def state(self) -> dict[str, Any]:
        kept = [asdict(line.segment) for line in self._kept]
        return {"best": self._best, "kept": kept, "then": [logp_T.tolist() for logp_T in self._then]}

    def restore(self, state: dict[str, Any]) -> None:
        self._best = state["best"]
        self._kept = [TrainSample(TokenSegment(**told), family) for family, told in enumerate(state["kept"])]
        self._then = [torch.tensor(values) for values in state["then"]]


def _retained(then_T: Tensor, now_T: Tensor) -> float:
    """How much likelier or less likely its sure tokens have become together, up to 1."""
    return math.exp(min(0.0, float((now_T - then_T)[then_T > _CONFIDENT].sum())))
