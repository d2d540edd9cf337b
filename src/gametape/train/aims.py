"""Where a hint is distilled: the span of one turn, and the same span after the hint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from gametape.core.segments import Segment
from gametape.train.trie import common_prefix


@dataclass(frozen=True)
class Aim:
    """A target in a line of ids. The teacher reads the line's first `cut` ids, then `inserted`, then the span."""

    start: int
    """Where the span begins in the line."""
    length: int
    cut: int
    inserted: tuple[int, ...]
    """The hint, up to where the turn begins again."""
    weight: float = 1.0
    kind: str = ""
    """The type of the hint, by which targets are counted together."""
    text: str = ""
    rollout: str = ""
    """By name: in which rollout it is, and below at which step of its record."""
    step: int = 0
    learn: Literal["kl", "resample", "penalty"] = "kl"
    resampled: tuple[int, ...] = ()
    """What the policy said there after the hint, where that is to be imitated."""

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        return cls(**told | {name: tuple(told[name]) for name in ("inserted", "resampled")})

    def instead(self, segment: Segment) -> Segment:
        """The line up to the target with only what is learned there chosen: the span, or what was said in its place."""
        said = list(self.resampled) or self.span(segment)
        before = self.start
        return Segment(
            ids=[*segment.ids[:before], *said],
            mask=[*([0] * before), *([1] * len(said))],
            logprobs=[*([0.0] * before), *([0.0] * len(said) if self.resampled else self._logprobs(segment))],
            policy_versions=[-1] * (before + len(said)),
            steps=[*([0] * before), *([self.step] * len(said))],
        )

    def _logprobs(self, segment: Segment) -> list[float]:
        return segment.logprobs[self.start : self.start + self.length]

    def branch(self, segment: Segment) -> list[int]:
        """What hangs off the line after `cut`."""
        return [*self.inserted, *self.span(segment)]

    def span(self, segment: Segment) -> list[int]:
        return segment.ids[self.start : self.start + self.length]


def aim_at(
    segments: Sequence[Segment], step: int, hinted_prompt: Sequence[int], kind: str, text: str
) -> tuple[int, Aim]:
    """The aim at what was chosen in a step, and in which segment it is; `hinted_prompt` is the prompt with the hint."""
    for number, segment in enumerate(segments):
        places = [at for at, chosen in enumerate(segment.steps) if chosen == step]
        if places:
            start, stop = places[0], places[-1] + 1
            cut = common_prefix(segment.ids[:start], hinted_prompt)
            inserted = tuple(hinted_prompt[cut:])
            return number, Aim(start, stop - start, cut, inserted, kind=kind, text=text, step=step)
    raise ValueError(f"nothing was chosen in step {step}")
