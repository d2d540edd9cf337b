"""Rollouts as data for training: a request for a prompt, its group of rollouts, the targets that a coach made for them,
and the rules by which a group with sparse rewards has a signal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeAlias

from pydantic import TypeAdapter
from torch import Tensor

from gametape.agent.episode import Episode
from gametape.coach.fork_pair import ForkPair
from gametape.core.environment import StepCredit, TurnMark
from gametape.core.hint import Hint
from gametape.core.protocols import Annotator, RolloutSource
from gametape.core.step import Step
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.train.packing import common_prefix
from gametape.watch.observed_step import ObservedStep, observed_step

GroupKind = Literal["mixed", "all_fail", "all_pass", "lost"]
TurnText = dict[str, Any]
"""One turn in words: `text`, and where there are some, `tool_calls` and `result`."""
_MAX_CHARACTERS = 2000
"""Characters of one text in a `TurnText`."""


@dataclass(frozen=True)
class RolloutResult:
    """What the rules for groups look at in a rollout."""

    reward: float
    passed: bool
    overlong: bool = False
    """It ran into a limit of turns, tokens or time. Its reward counts in the others' baseline; it gets no gradient of
    its own. A rollout that ended for want of a usable call is none: that is a failure like any other."""
    credits: tuple[StepCredit, ...] = ()
    infra_error: bool = False
    """The infrastructure failed: the result says nothing about the policy."""

    @property
    def all_rewards(self) -> tuple[float, ...]:
        """Of the whole attempt and of its parts."""
        return (self.reward, *(credit.reward for credit in self.credits))


def group_kind(group: Sequence[RolloutResult]) -> GroupKind:
    """`mixed` groups carry a policy gradient; those that all fail go to the coach; a group needs two to compare."""
    counted = [result for result in group if not result.infra_error]
    if len(counted) < 2:
        return "lost"
    if len({result.all_rewards for result in counted}) > 1 and gradient_members(group):
        return "mixed"
    return "all_pass" if all(result.passed for result in counted) else "all_fail"


def baseline_members(group: Sequence[RolloutResult]) -> list[int]:
    """The rollouts whose rewards make up the group's statistics."""
    return [at for at, result in enumerate(group) if not result.infra_error]


def gradient_members(group: Sequence[RolloutResult]) -> list[int]:
    """The rollouts that get a gradient, given that the group is mixed."""
    return [at for at, result in enumerate(group) if not (result.infra_error or result.overlong)]


def groups_to_resample(kinds: Sequence[GroupKind], wanted: int, most: int) -> int:
    """How many groups to sample again: as many as lack a signal, within the budget for one update."""
    return max(0, min(wanted - sum(kind == "mixed" for kind in kinds), most - len(kinds)))


Purpose = Literal["train", "held_out", "hinted"]
"""What a request is for: to be learned from, or to measure held-out success, without hints and with them."""


@dataclass(frozen=True)
class PromptRequest:
    """A request for one group: the bucket of its prompt, and the seed of this instance. `number` counts requests; for
    an evaluation it is that of the held-out prompt."""

    number: int
    bucket: int
    seed: int
    purpose: Purpose = "train"


@dataclass(frozen=True)
class DistillTarget:
    """The span of one turn at which a hint is distilled. The teacher reads the segment's first `shared_prefix` ids,
    then `hint_ids`, then the span."""

    start: int
    """Where the span begins in the segment."""
    length: int
    shared_prefix: int
    hint_ids: tuple[int, ...]
    """The hint, up to where the turn begins again."""
    weight: float = 1.0
    kind: str = ""
    """The type of the hint, by which targets are counted together."""
    text: str = ""
    author: str = ""
    """Who wrote the hint."""
    trajectory_id: str = ""
    """The name of the rollout's trajectory; `step` is a step of it."""
    step: int = 0
    learn: Literal["kl", "resample", "penalty"] = "kl"
    resampled: tuple[int, ...] = ()
    """What the policy sampled there after the hint, where that is to be imitated."""
    rollout_index: int = -1
    """The rollout of the group, and below the segment of the rollout, that the target is in."""
    segment_index: int = -1

    def replacement_segment(self, segment: TokenSegment) -> TokenSegment:
        """The segment up to the target, in which only what is learned there is chosen: the span, or what was resampled
        in its place."""
        ids = list(self.resampled) or self.span_ids(segment)
        before = self.start
        logprobs = [0.0] * len(ids) if self.resampled else segment.logprobs[before : before + self.length]
        return TokenSegment(
            ids=[*segment.ids[:before], *ids],
            mask=[*([0] * before), *([1] * len(ids))],
            logprobs=[*([0.0] * before), *logprobs],
            policy_versions=[-1] * (before + len(ids)),
            steps=[*([0] * before), *([self.step] * len(ids))],
        )

    def truncated(self, segment: TokenSegment) -> TokenSegment:
        """The segment up to the end of the target, with nothing else chosen: other errors in it are not to be kept."""
        return chosen_span(segment, self.start, self.length)

    def hinted_branch(self, segment: TokenSegment) -> list[int]:
        """What follows the segment's first `shared_prefix` ids for the teacher."""
        return [*self.hint_ids, *self.span_ids(segment)]

    def span_ids(self, segment: TokenSegment) -> list[int]:
        return segment.ids[self.start : self.start + self.length]


def chosen_span(segment: TokenSegment, start: int, length: int) -> TokenSegment:
    """The segment up to the end of a span, which alone is chosen in it."""
    stop = start + length
    return TokenSegment(
        segment.ids[:stop],
        [*([0] * start), *segment.mask[start:stop]],
        segment.logprobs[:stop],
        segment.policy_versions[:stop],
        segment.steps[:stop],
    )


def distill_target_at(
    segments: Sequence[TokenSegment], step: int, hinted_prompt: Sequence[int], kind: str, text: str
) -> DistillTarget:
    """The target that spans all tokens sampled in a step; `hinted_prompt` is the prompt with the hint."""
    for number, segment in enumerate(segments):
        places = [at for at, sampled_in in enumerate(segment.steps) if sampled_in == step]
        if places:
            start, stop = places[0], places[-1] + 1
            shared = common_prefix(segment.ids[:start], hinted_prompt)
            return DistillTarget(
                start,
                stop - start,
                shared,
                tuple(hinted_prompt[shared:]),
                kind=kind,
                text=text,
                step=step,
                segment_index=number,
            )
    raise ValueError(f"nothing was chosen in step {step}")


@dataclass(frozen=True)
class RolloutSample:
    """One rollout. `tokens_read` counts what its engine had to read, `tokens_generated` what it sampled."""

    segments: tuple[TokenSegment, ...]
    result: RolloutResult
    turns: int
    tokens_read: int
    tokens_generated: int
    reason: str = ""
    """Why it ended."""
    hacked: bool = False
    marks: tuple[TurnMark, ...] = ()
    turn_texts: tuple[TurnText, ...] = ()
    """Its turns in words, where monitors are to read them."""
    past_deadline: bool = False
    """It was cut at its deadline."""
    hinted: bool = False
    """It was played with hints, which its record leaves out."""

    @classmethod
    def from_episode(cls, episode: Episode, with_texts: bool = False) -> Self:
        score, usage = episode.score, episode.usage
        return cls(
            segments=tuple(split_segments(episode.steps)),
            result=RolloutResult(
                reward=score.reward if score else 0.0,
                passed=bool(score and score.passed),
                overlong=episode.overlong,
                infra_error=score is None,
                credits=score.credits if score else (),
            ),
            turns=usage.turns,
            tokens_read=usage.prompt_tokens - usage.cached_tokens,
            tokens_generated=usage.completion_tokens,
            reason=episode.end.reason,
            hacked=bool(score and score.hacked),
            marks=score.marks if score else (),
            turn_texts=turn_texts(episode.steps) if with_texts else (),
            past_deadline=episode.past_deadline,
        )

    @property
    def sampled_steps(self) -> list[int]:
        """The steps in which the policy chose something, in order: its turns."""
        pairs = (zip(segment.steps, segment.mask, strict=True) for segment in self.segments)
        return sorted({step for segment in pairs for step, bit in segment if bit})

    @property
    def oldest_version(self) -> int | None:
        """The oldest version of the weights that sampled it; None where nothing was sampled."""
        return min(self.versions, default=None)

    @property
    def versions(self) -> set[int]:
        """The versions of the weights that sampled it."""
        return {version for segment in self.segments for version in segment.policy_versions if version >= 0}


@dataclass(frozen=True)
class HintCounts:
    """Hints that were written, those of them that were refused before any gate, and those that became targets."""

    written: int = 0
    refused: int = 0
    used: int = 0

    def __add__(self, other: "HintCounts") -> "HintCounts":
        return HintCounts(self.written + other.written, self.refused + other.refused, self.used + other.used)


@dataclass(frozen=True)
class RolloutGroup:
    """All rollouts of one request, in the order of their seeds, with the coach's targets for them."""

    request: PromptRequest
    rollouts: tuple[RolloutSample, ...]
    targets: tuple[DistillTarget, ...] = ()
    coach_tokens: int = 0
    """What the coach read and sampled for it."""
    hint_counts: dict[str, HintCounts] = field(default_factory=dict)
    """By the author of its hints."""

    @property
    def results(self) -> Sequence[RolloutResult]:
        return [rollout.result for rollout in self.rollouts]

    @property
    def kind(self) -> GroupKind:
        return group_kind(self.results)

    @property
    def oldest_version(self) -> int | None:
        """Rollouts with an infrastructure error have no version, and do not count."""
        versions = (rollout.oldest_version for rollout in self.rollouts)
        return min((version for version in versions if version is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return TypeAdapter(cls).validate_python(with_current_state_keys(data))


@dataclass(frozen=True)
class TargetMetrics:
    """What one distillation target did in an update, token by token, for people to look at."""

    kind: str
    text: str
    author: str
    rollout: str
    """The name of the rollout's trajectory."""
    step: int
    ids: list[int]
    student: list[float]
    """Log-probabilities of the sampled tokens, without the hint."""
    teacher: list[float]
    """Log-probabilities of the same tokens after the hint."""
    kl: list[float]
    weights: list[float]
    student_top: list[list[tuple[int, float]]]
    teacher_top: list[list[tuple[int, float]]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TokenReading:
    """What an update saw at the tokens that a rollout sampled in one step: the log-probabilities by the weights that it
    began with, and the entropies of their choices."""

    rollout: str
    """The name of the rollout's trajectory."""
    step: int
    learner: list[float]
    entropy: list[float]

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, "learner": self.learner, "entropy": self.entropy}


@dataclass(frozen=True)
class AnnotatedEpisode:
    """A rollout with the coach's hints on it, the readings of the update that learned from it, and forks that the coach
    has run from it, one without a hint beside one with it."""

    name: str
    episode: Episode
    hints: Sequence[Hint]
    advantage: float
    readings: Sequence[TokenReading] = ()
    forks: Sequence[ForkPair] = ()


Weights: TypeAlias = Mapping[str, Tensor]
GroupSource: TypeAlias = RolloutSource[PromptRequest, RolloutGroup, Weights]
GroupAnnotator: TypeAlias = Annotator[RolloutGroup, Episode]


def turn_texts(steps: Sequence[Step]) -> tuple[TurnText, ...]:
    """The agent's own turns of a rollout, in words."""
    return tuple(_turn_text(observed) for step in steps if (observed := observed_step(step)) is not None)


def _turn_text(observed: ObservedStep) -> TurnText:
    calls = [{"name": action.tool, "arguments": action.arguments[:_MAX_CHARACTERS]} for action in observed.actions]
    text: TurnText = {"text": observed.text[:_MAX_CHARACTERS], "tool_calls": calls}
    return text if observed.result is None else text | {"result": observed.result[:_MAX_CHARACTERS]}


_OLD_STATE_KEYS = {
    "draw": "request",
    "cell": "bucket",
    "right": "correct",
    "lost": "infra_error",
    "said": "turn_texts",
    "read": "tokens_read",
    "generated": "tokens_generated",
    "aims": "targets",
    "rollout": "trajectory_id",
    "cut": "shared_prefix",
    "inserted": "hint_ids",
    "imitated": "sft_weight",
    "family": "prompt_number",
}
"""What keys of groups and samples were called in checkpoints that were written before they were renamed."""


def with_current_state_keys(data: Any) -> Any:
    """A group, request or sample from a checkpoint, with every old key under its current name."""
    if isinstance(data, list | tuple):
        return [with_current_state_keys(item) for item in data] if data and isinstance(data[0], dict) else data
    if not isinstance(data, Mapping):
        return data
    if "aim" in data:
        position = {"rollout_index": data["rollout"], "segment_index": data["segment"]}
        return with_current_state_keys(data["aim"]) | position
    return {_OLD_STATE_KEYS.get(key, key): with_current_state_keys(value) for key, value in data.items()}
