"""Which rollouts teach what: the rules of sparse rewards in groups, as pure functions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from gametape.agent.episode import Episode
from gametape.core.environment import TurnMark
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.train.behaviour import TurnText, turn_texts
from gametape.train.distill_target import DistillTarget

GroupKind = Literal["mixed", "all_fail", "all_pass", "lost"]


@dataclass(frozen=True)
class RolloutResult:
    """What the rules look at in a rollout."""

    reward: float
    passed: bool
    overlong: bool = False
    """It ran into a limit. What it got counts for the others; it gets no gradient of its own."""
    infra_error: bool = False
    """The machinery failed: nothing was learned about the policy."""


def group_kind(group: Sequence[RolloutResult]) -> GroupKind:
    """`mixed` groups carry a policy gradient; those that all fail go to the coach; a group needs two to compare."""
    counted = [result for result in group if not result.infra_error]
    if len(counted) < 2:
        return "lost"
    if len({result.reward for result in counted}) > 1 and gradient_members(group):
        return "mixed"
    return "all_pass" if all(result.passed for result in counted) else "all_fail"


def baseline_members(group: Sequence[RolloutResult]) -> list[int]:
    """Whose rewards make up the group's statistics."""
    return [at for at, result in enumerate(group) if not result.infra_error]


def gradient_members(group: Sequence[RolloutResult]) -> list[int]:
    """Who gets a gradient, given that the group is mixed."""
    return [at for at, result in enumerate(group) if not (result.infra_error or result.overlong)]


def groups_to_resample(kinds: Sequence[GroupKind], wanted: int, most: int) -> int:
    """How many groups to sample again: as many as lack a signal, within the budget for one update."""
    return max(0, min(wanted - sum(kind == "mixed" for kind in kinds), most - len(kinds)))


@dataclass(frozen=True)
class PromptRequest:
    """One prompt to be played by a group: which cell, and the seed of this instance. `number` counts all draws."""

    number: int
    bucket: int
    seed: int


@dataclass(frozen=True)
class RolloutSample:
    """One rollout. `read` counts the tokens that its engine had to read, `generated` those it sampled."""

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
    """Its turns in words, where somebody is to look at them."""

    @classmethod
    def from_episode(cls, episode: Episode, in_words: bool = False) -> Self:
        judged, spent = episode.score, episode.usage
        return cls(
            segments=tuple(split_segments(episode.steps)),
            result=RolloutResult(
                reward=judged.reward if judged else 0.0,
                passed=bool(judged and judged.passed),
                overlong=episode.cut_short,
                infra_error=judged is None,
            ),
            turns=spent.turns,
            tokens_read=spent.prompt_tokens - spent.cached_tokens,
            tokens_generated=spent.completion_tokens,
            reason=episode.end.reason,
            hacked=bool(judged and judged.hacked),
            marks=judged.marks if judged else (),
            turn_texts=turn_texts(episode.steps) if in_words else (),
        )

    @property
    def oldest_version(self) -> int | None:
        """Of the weights that sampled it; None where nothing was sampled."""
        versions = [version for line in self.segments for version in line.policy_versions if version >= 0]
        return min(versions, default=None)


@dataclass(frozen=True)
class GroupTarget:
    """A target in one of a group's rollouts, and in one of its segments."""

    rollout: int
    segment: int
    target: DistillTarget


@dataclass(frozen=True)
class RolloutGroup:
    """All rollouts of one draw, in the order of their seeds, with what the coach found in them."""

    request: PromptRequest
    rollouts: tuple[RolloutSample, ...]
    targets: tuple[GroupTarget, ...] = ()
    coach_tokens: int = 0
    """What the coach read and sampled for it."""

    @property
    def results(self) -> Sequence[RolloutResult]:
        return [rolled.result for rolled in self.rollouts]

    @property
    def kind(self) -> GroupKind:
        return group_kind(self.results)

    @property
    def oldest_version(self) -> int | None:
        """What was lost on the way has none, and leaves the group."""
        versions = (rolled.oldest_version for rolled in self.rollouts)
        return min((version for version in versions if version is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(
            request=PromptRequest(**data["draw"]),
            rollouts=tuple(
                RolloutSample(
                    **rolled
                    | {
                        "segments": tuple(TokenSegment(**line) for line in rolled["segments"]),
                        "result": RolloutResult(**rolled["result"]),
                        "marks": tuple(TurnMark(**mark) for mark in rolled["marks"]),
                        "said": tuple(rolled["said"]),
                    }
                )
                for rolled in data["rollouts"]
            ),
            targets=tuple(_group_target(one) for one in data["aims"]),
            coach_tokens=data["coach_tokens"],
        )


def _group_target(data: dict[str, Any]) -> GroupTarget:
    return GroupTarget(data["rollout"], data["segment"], DistillTarget.from_dict(data["aim"]))
