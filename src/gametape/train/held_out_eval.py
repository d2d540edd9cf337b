"""Held-out success on prompts that are never trained on, and the probe of what a policy forgets between evaluations."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hinted_engine import with_hints
from gametape.core.config import EvalConfig
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.token_conversation import TokenModel
from gametape.tasks.worlds.world import World
from gametape.train.batch import TrainSample
from gametape.train.prompts import PromptDataset
from gametape.train.sources import RolloutWorker

_HINTED_PROMPTS = 64
"""Prompts that are attempted once more with hints."""


@dataclass(frozen=True)
class HeldOutScore:
    """`load_bearing` and `ordinary` are shares of turns that went right, where the environment can tell."""

    episodes: int
    success: float
    load_bearing: float | None
    ordinary: float | None
    hinted: float | None
    """The share of load-bearing turns that go right when a hint states the rule before them: whether the policy reads
    hints."""
    infra_errors: int
    """Attempts with an infrastructure error; no figure counts them."""
    read: int
    generated: int

    def to_dict(self) -> dict[str, Any]:
        """As `metrics.jsonl` has it, where infrastructure errors are called `lost`."""
        values = asdict(self)
        return {**values, "lost": values.pop("infra_errors")}


class HeldOutEvaluator:
    """Runs a fixed list of prompts with fixed seeds, so that two evaluations differ by the weights alone."""

    def __init__(
        self, model: TokenModel, dataset: PromptDataset, limits: RolloutLimits, config: EvalConfig, seed: int
    ) -> None:
        self._worker = RolloutWorker(model, dataset, limits, config.temperature, seed_for(seed, "held out"))
        self._prompts = [dataset.held_out(number) for number in range(config.episodes)]
        self.successes: list[list[TokenSegment]] = []
        """The successful rollouts of the last evaluation, as segments."""

    async def evaluate(self, version: int) -> HeldOutScore:
        """With the weights of this version. Names of these attempts come before those of any request, so that the
        engine takes them in the same order whatever else is under way. The engine keeps nothing of it."""
        engine = self._worker.model.engine
        engine.weights_changed(version)
        engine.forget()
        attempts = (self._worker.run_episode(prompt, f"a{at:06}") for at, prompt in enumerate(self._prompts))
        episodes = await asyncio.gather(*attempts)
        self.successes = [
            split_segments(episode.steps) for episode in episodes if episode.score and episode.score.passed
        ]
        score = held_out_score(episodes, await self._hinted())
        engine.weights_changed(version)
        engine.forget()
        return score

    async def _hinted(self) -> float | None:
        """In worlds, where the rules are known; on some of the prompts."""
        attempts = []
        for at, prompt in enumerate(self._prompts[:_HINTED_PROMPTS]):
            if isinstance(prompt.environment, World):
                jobs = enumerate(prompt.environment.plan.jobs, start=1)
                hints = {turn: job.hint() for turn, job in jobs if job.marking}
                hinted = replace(prompt, adapt_model=partial(with_hints, hints=hints))
                attempts.append(self._worker.run_episode(hinted, f"b{at:06}"))
        return held_out_score(await asyncio.gather(*attempts), None).load_bearing if attempts else None


def held_out_score(episodes: list[Episode], hinted_rate: float | None) -> HeldOutScore:
    scores = [episode.score for episode in episodes if episode.score]
    marks = [mark for score in scores for mark in score.marks]
    return HeldOutScore(
        episodes=len(scores),
        success=sum(score.passed for score in scores) / max(1, len(scores)),
        load_bearing=_share([mark.correct for mark in marks if mark.load_bearing]),
        ordinary=_share([mark.correct for mark in marks if not mark.load_bearing]),
        hinted=hinted_rate,
        infra_errors=len(episodes) - len(scores),
        read=sum(episode.usage.prompt_tokens - episode.usage.cached_tokens for episode in episodes),
        generated=sum(episode.usage.completion_tokens for episode in episodes),
    )


def _share(correct: list[bool]) -> float | None:
    return sum(correct) / len(correct) if correct else None


_CONFIDENT = math.log(0.9)
"""Only tokens that the policy was surer of count: elsewhere another word may do as well, and rewards go on to move
it."""
_MIN_SUCCESSES = 8
"""Fewer are flukes of a policy that has nothing to forget yet."""

LogprobScorer = Callable[[Sequence[TrainSample]], list[Tensor]]
"""Gives the log-probabilities of each sample's chosen tokens under the current weights."""


class ForgettingProbe:
    """Measures what the policy forgets after every update, without sampling: up to `size` successful rollouts of its
    best evaluation are scored under the new weights. Sampled anew, hundreds would be needed to see that a few points of
    success are gone; the same tokens show it in some thirty. They are held out: nothing learns from them."""

    def __init__(self, score: LogprobScorer, size: int) -> None:
        self._score, self._size = score, size
        self._best = 0.0
        self._kept: list[TrainSample] = []
        self._then: list[Tensor] = []

    def keep_successes(self, successes: Sequence[Sequence[TokenSegment]], rate: float) -> None:
        """Of an evaluation, if it was better than all before. Those whose context was rewritten are left out."""
        whole = [rollout[0] for rollout in successes if len(rollout) == 1][: self._size]
        if rate > self._best and len(whole) >= min(_MIN_SUCCESSES, self._size):
            self._best = rate
            self._kept = [TrainSample(segment, number) for number, segment in enumerate(whole)]
            self._then = self._score(self._kept)

    def forgotten_share(self) -> float | None:
        """How much of that evaluation's success would be gone: 0.05 is five points. None without an evaluation."""
        if not self._kept:
            return None
        pairs = zip(self._then, self._score(self._kept), strict=True)
        return self._best * (1 - sum(_retained(then_T, now_T) for then_T, now_T in pairs) / len(self._kept))

    def state(self) -> dict[str, Any]:
        kept = [asdict(sample.segment) for sample in self._kept]
        return {"best": self._best, "kept": kept, "then": [logp_T.tolist() for logp_T in self._then]}

    def restore(self, state: dict[str, Any]) -> None:
        self._best = state["best"]
        self._kept = [TrainSample(TokenSegment(**columns), number) for number, columns in enumerate(state["kept"])]
        self._then = [torch.tensor(values) for values in state["then"]]


def _retained(then_T: Tensor, now_T: Tensor) -> float:
    """How much likelier or less likely its sure tokens have become together, up to 1."""
    return math.exp(min(0.0, float((now_T - then_T)[then_T > _CONFIDENT].sum())))
