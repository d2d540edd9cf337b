"""What training keeps of finished rollouts: lines of ids, rewards, counts. It pickles, and nothing else is needed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from gametape.agent.playing import Played
from gametape.core.assignment import Mark
from gametape.core.segments import Segment, segments
from gametape.train.aims import Aim
from gametape.train.behaviour import Said, said_in
from gametape.train.selection import Kind, Result, kind_of


@dataclass(frozen=True)
class Draw:
    """One prompt to be played by a group: which cell, and the seed of this instance. `number` counts all draws."""

    number: int
    cell: int
    seed: int


@dataclass(frozen=True)
class Rolled:
    """One rollout. `read` counts the tokens that its engine had to read, `generated` those it sampled."""

    segments: tuple[Segment, ...]
    result: Result
    turns: int
    read: int
    generated: int
    reason: str = ""
    """Why it ended."""
    hacked: bool = False
    marks: tuple[Mark, ...] = ()
    said: tuple[Said, ...] = ()
    """Its turns in words, where somebody is to look at them."""

    @classmethod
    def of(cls, played: Played, in_words: bool = False) -> Self:
        judged, spent = played.judged, played.spent
        return cls(
            segments=tuple(segments(played.steps)),
            result=Result(
                reward=judged.reward if judged else 0.0,
                passed=bool(judged and judged.passed),
                overlong=played.cut_short,
                lost=judged is None,
            ),
            turns=spent.turns,
            read=spent.prompt_tokens - spent.cached_tokens,
            generated=spent.completion_tokens,
            reason=played.over.reason,
            hacked=bool(judged and judged.hacked),
            marks=judged.marks if judged else (),
            said=said_in(played.steps) if in_words else (),
        )

    @property
    def oldest_version(self) -> int | None:
        """Of the weights that sampled it; None where nothing was sampled."""
        versions = [version for line in self.segments for version in line.policy_versions if version >= 0]
        return min(versions, default=None)


@dataclass(frozen=True)
class Aimed:
    """A target in one of a group's rollouts, and in one of its segments."""

    rollout: int
    segment: int
    aim: Aim


@dataclass(frozen=True)
class Group:
    """All rollouts of one draw, in the order of their seeds, with what the coach found in them."""

    draw: Draw
    rollouts: tuple[Rolled, ...]
    aims: tuple[Aimed, ...] = ()
    coach_tokens: int = 0
    """What the coach read and sampled for it."""

    @property
    def results(self) -> Sequence[Result]:
        return [rolled.result for rolled in self.rollouts]

    @property
    def kind(self) -> Kind:
        return kind_of(self.results)

    @property
    def oldest_version(self) -> int | None:
        """What was lost on the way has none, and leaves the group."""
        versions = (rolled.oldest_version for rolled in self.rollouts)
        return min((version for version in versions if version is not None), default=None)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        return cls(
            draw=Draw(**told["draw"]),
            rollouts=tuple(
                Rolled(
                    **rolled
                    | {
                        "segments": tuple(Segment(**line) for line in rolled["segments"]),
                        "result": Result(**rolled["result"]),
                        "marks": tuple(Mark(**mark) for mark in rolled["marks"]),
                        "said": tuple(rolled["said"]),
                    }
                )
                for rolled in told["rollouts"]
            ),
            aims=tuple(_aimed(one) for one in told["aims"]),
            coach_tokens=told["coach_tokens"],
        )


def _aimed(told: dict[str, Any]) -> Aimed:
    return Aimed(told["rollout"], told["segment"], Aim.from_plain(told["aim"]))
