"""What one update learns from: lines of ids, each with what it counts in the streams of the loss."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from gametape.core.segments import Segment
from gametape.train.aims import Aim
from gametape.train.losses import group_advantages
from gametape.train.rolled import Group, Rolled
from gametape.train.selection import baseline_members, with_gradient


@dataclass(frozen=True)
class Line:
    """One context with the tokens that were chosen in it. `family`: lines of one group begin with the same prompt."""

    segment: Segment
    family: int
    advantage: float = 0.0
    """In the policy gradient; 0 leaves the line out of it."""
    imitated: float = 0.0
    """How much its chosen tokens are made likelier, as in supervised training."""
    aims: tuple[Aim, ...] = ()
    """Turns at which a hint is distilled, whatever else the line counts for."""

    @property
    def chosen(self) -> list[int]:
        """The places of the tokens that the policy chose."""
        return [at for at, bit in enumerate(self.segment.mask) if bit]


@dataclass(frozen=True)
class Batch:
    """`rollouts` counts all that were sampled for this update, whatever became of them: it fixes the normaliser."""

    lines: tuple[Line, ...]
    rollouts: int
    draws: tuple[int, ...] = field(default=())
    """The numbers of the draws that it comes from, to name it by."""


def reinforced(groups: Sequence[Group], advantage: str) -> Batch:
    """Mixed groups, each rollout with its advantage over the others; and whatever the coach aims at, advantage or not.

    Rollouts that may not have a gradient get none here, and have counted in the baseline of the others.
    """
    lines = []
    for group in groups:
        values = advantages_of(group, advantage)
        for at, rolled in enumerate(group.rollouts):
            for number, segment in enumerate(rolled.segments):
                aims = [one.aim for one in group.aims if (one.rollout, one.segment) == (at, number)]
                distilled = tuple(aim for aim in aims if aim.learn == "kl")
                if distilled or values.get(at):
                    lines.append(Line(segment, group.draw.number, values.get(at, 0.0), aims=distilled))
                lines += [_instead(aim, segment, group.draw.number) for aim in aims if aim.learn != "kl"]
    return _batch(lines, groups)


def _instead(aim: Aim, segment: Segment, family: int) -> Line:
    """A target from which something else is learned than the teacher's choices."""
    line = aim.instead(segment)
    if aim.learn == "penalty":
        return Line(line, family, advantage=-aim.weight)
    return Line(line, family, imitated=aim.weight)


def taken(groups: Sequence[Group], worth: Callable[[Rolled], bool]) -> Batch:
    """What is worth it is imitated."""
    lines = [
        Line(segment, group.draw.number, imitated=1.0)
        for group in groups
        for rolled in group.rollouts
        if worth(rolled)
        for segment in rolled.segments
    ]
    return _batch(lines, groups)


def imitated(families: Iterable[Sequence[Segment]]) -> Batch:
    """Demonstrations; those of one family begin alike."""
    lines = tuple(Line(segment, number, imitated=1.0) for number, family in enumerate(families) for segment in family)
    return Batch(lines, rollouts=len(lines))


def advantages_of(group: Group, variant: str) -> dict[int, float]:
    """By rollout, of those that get a gradient: how much better it was than the rest. Only mixed groups have any."""
    if group.kind != "mixed":
        return {}
    counted = baseline_members(group.results)
    rewards_G = torch.tensor([group.results[at].reward for at in counted])
    values = dict(zip(counted, group_advantages(rewards_G, variant).tolist(), strict=True))
    return {at: values[at] for at in with_gradient(group.results)}


def _batch(lines: Sequence[Line], groups: Sequence[Group]) -> Batch:
    rollouts = sum(len(group.rollouts) for group in groups)
    return Batch(tuple(lines), rollouts, tuple(group.draw.number for group in groups))
