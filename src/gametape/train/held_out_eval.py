"""Held-out success on prompts that are never trained on, and the probe of what a policy forgets between evaluations."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from pydantic import TypeAdapter
from torch import Tensor

from gametape.core.environment import TurnMark
from gametape.core.observation_config import EvalConfig
from gametape.core.token_segments import TokenSegment
from gametape.tasks.worlds.world import World
from gametape.train.batch import TrainSample
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import PromptRequest, RolloutGroup

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
    versions: tuple[int, int] | None = None
    """The oldest and the newest weights that played it: an evaluation goes on while the policy learns."""

    def to_dict(self) -> dict[str, Any]:
        """As `metrics.jsonl` has it, where infrastructure errors are called `lost`."""
        values = asdict(self)
        return {"lost": values.pop("infra_errors"), **values}


@dataclass(frozen=True)
class HeldOutResult:
    """What an evaluation keeps of one rollout."""

    hinted: bool
    passed: bool
    infra_error: bool
    read: int
    generated: int
    marks: tuple[TurnMark, ...]
    versions: tuple[int, ...]
    """Those that sampled it."""

    @classmethod
    def from_group(cls, group: RolloutGroup) -> Self:
        (rollout,) = group.rollouts
        return cls(
            hinted=group.request.purpose == "hinted",
            passed=rollout.result.passed,
            infra_error=rollout.result.infra_error,
            read=rollout.tokens_read,
            generated=rollout.tokens_generated,
            marks=rollout.marks,
            versions=tuple(sorted(rollout.versions)),
        )


class HeldOutEvaluator:
    """Asks for a fixed list of prompts with fixed seeds, so that two evaluations differ by the weights alone. They are
    played by the source of the run, beside what is learned from: an evaluation is as many requests, of which the loop
    orders some after each update."""

    def __init__(self, dataset: PromptDataset, config: EvalConfig) -> None:
        plain = [PromptRequest(number, 0, 0, "held_out") for number in range(config.episodes)]
        hinted = [
            PromptRequest(number, 0, 0, "hinted")
            for number in range(min(_HINTED_PROMPTS, config.episodes))
            if isinstance(dataset.held_out(number).environment, World)
        ]
        self._requests = [*plain, *hinted]
        self._kept_successes = config.forgetting_probe_size
        self._unordered: list[PromptRequest] = []
        self._playing = 0
        self.results: list[HeldOutResult] = []
        self.successes: list[list[TokenSegment]] = []
        """Successful rollouts for the probe, as segments: those whose context was rewritten are no use to it."""

    @property
    def running(self) -> bool:
        return bool(self._unordered or self._playing)

    @property
    def unordered(self) -> Sequence[PromptRequest]:
        return self._unordered

    def begin(self) -> None:
        self._unordered, self.results, self.successes = list(self._requests), [], []

    def take_requests(self, most: int) -> list[PromptRequest]:
        """The next requests to be ordered. Hinted attempts begin when the others are ordered."""
        same = [request for request in self._unordered if request.purpose == self._unordered[0].purpose]
        taken, self._unordered = self._unordered[: min(most, len(same))], self._unordered[min(most, len(same)) :]
        self._playing += len(taken)
        return taken

    def cut(self) -> None:
        """Order no more: the score is that of what was ordered."""
        self._unordered = []

    def record(self, group: RolloutGroup) -> None:
        self._playing -= 1
        self.results.append(HeldOutResult.from_group(group))
        (rollout,) = group.rollouts
        if group.request.purpose == "held_out" and rollout.result.passed and len(rollout.segments) == 1:
            self.successes = [*self.successes, list(rollout.segments)][: self._kept_successes]

    def score(self) -> HeldOutScore:
        return held_out_score(self.results)

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds; requests that are being played are ordered again by the loop."""
        return {
            "unordered": [asdict(request) for request in self._unordered],
            "playing": self._playing,
            "results": [asdict(result) for result in self.results],
            "successes": [[asdict(segment) for segment in rollout] for rollout in self.successes],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._unordered = [PromptRequest(**request) for request in state["unordered"]]
        self._playing = state["playing"]
        self.results = TypeAdapter(list[HeldOutResult]).validate_python(state["results"])
        self.successes = [[TokenSegment(**columns) for columns in rollout] for rollout in state["successes"]]


def held_out_score(results: Sequence[HeldOutResult]) -> HeldOutScore:
    """Tokens are those of attempts without hints."""
    plain = [result for result in results if not result.hinted]
    counted = [result for result in plain if not result.infra_error]
    marks = [mark for result in counted for mark in result.marks]
    hinted = [mark for result in results if result.hinted for mark in result.marks]
    versions = [version for result in plain for version in result.versions]
    return HeldOutScore(
        episodes=len(counted),
        success=sum(result.passed for result in counted) / max(1, len(counted)),
        load_bearing=_share([mark.correct for mark in marks if mark.load_bearing]),
        ordinary=_share([mark.correct for mark in marks if not mark.load_bearing]),
        hinted=_share([mark.correct for mark in hinted if mark.load_bearing]),
        infra_errors=len(plain) - len(counted),
        read=sum(result.read for result in plain),
        generated=sum(result.generated for result in plain),
        versions=(min(versions), max(versions)) if versions else None,
    )


def _share(correct: list[bool]) -> float | None:
    return sum(correct) / len(correct) if correct else None


_CONFIDENT = math.log(0.9)
"""Only tokens that the policy was surer of count: elsewhere another word may do as well, and rewards go on to move
it."""
_MIN_SUCCESSES = 8
"""Fewer are flukes of a policy that has nothing to forget yet."""

LogprobScorer = Callable[[Sequence[TrainSample]], Sequence[Tensor]]
"""Gives the log-probabilities of each sample's chosen tokens under the current weights."""


class ForgettingProbe:
    """Measures what the policy forgets after every update, without sampling: up to `size` successful rollouts of its
    best evaluation are scored under the new weights. Sampled anew, hundreds would be needed to see that a few points of
    success are gone; the same tokens show it in some thirty. They are held out: nothing learns from them."""

    def __init__(self, score: LogprobScorer, size: int) -> None:
        self._score, self._size = score, size
        self._best = 0.0
        self._kept: list[TrainSample] = []
        self._then: Sequence[Tensor] = []

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
