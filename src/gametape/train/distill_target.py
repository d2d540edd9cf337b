"""Where a hint is distilled: the span of one turn, and the same span after the hint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from gametape.core.token_segments import TokenSegment
from gametape.train.packing import common_prefix


@dataclass(frozen=True)
class DistillTarget:
    """A target in a line of ids. The teacher reads the line's first `cut` ids, then `inserted`, then the span."""

    start: int
    """Where the span begins in the line."""
    length: int
    shared_prefix: int
    hint_ids: tuple[int, ...]
    """The hint, up to where the turn begins again."""
    weight: float = 1.0
    kind: str = ""
    """The type of the hint, by which targets are counted together."""
    text: str = ""
    trajectory_id: str = ""
    """By name: in which rollout it is, and below at which step of its record."""
    step: int = 0
    learn: Literal["kl", "resample", "penalty"] = "kl"
    resampled: tuple[int, ...] = ()
    """What the policy said there after the hint, where that is to be imitated."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data | {name: tuple(data[name]) for name in ("inserted", "resampled")})

    def replacement_segment(self, segment: TokenSegment) -> TokenSegment:
        """The line up to the target with only what is learned there chosen: the span, or what was said in its place."""
        said = list(self.resampled) or self.span_ids(segment)
        before = self.start
        return TokenSegment(
            ids=[*segment.ids[:before], *said],
            mask=[*([0] * before), *([1] * len(said))],
            logprobs=[*([0.0] * before), *([0.0] * len(said) if self.resampled else self._logprobs(segment))],
            policy_versions=[-1] * (before + len(said)),
            steps=[*([0] * before), *([self.step] * len(said))],
        )

    def _logprobs(self, segment: TokenSegment) -> list[float]:
        return segment.logprobs[self.start : self.start + self.length]

    def hinted_branch(self, segment: TokenSegment) -> list[int]:
        """What hangs off the line after `cut`."""
        return [*self.hint_ids, *self.span_ids(segment)]

    def span_ids(self, segment: TokenSegment) -> list[int]:
        return segment.ids[self.start : self.start + self.length]


def distill_target_at(
    segments: Sequence[TokenSegment], step: int, hinted_prompt: Sequence[int], kind: str, text: str
) -> tuple[int, DistillTarget]:
    """The aim at what was chosen in a step, and in which segment it is; `hinted_prompt` is the prompt with the hint."""
    for number, segment in enumerate(segments):
        places = [at for at, chosen in enumerate(segment.steps) if chosen == step]
        if places:
            start, stop = places[0], places[-1] + 1
            cut = common_prefix(segment.ids[:start], hinted_prompt)
            inserted = tuple(hinted_prompt[cut:])
            return number, DistillTarget(start, stop - start, cut, inserted, kind=kind, text=text, step=step)
    raise ValueError(f"nothing was chosen in step {step}")
