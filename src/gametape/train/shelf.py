"""Targets of earlier updates, learned from again: what the teacher says there, and how far the policy still is from it,
is worked out anew each time, so that no new rollout is needed."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from gametape.core.config import TTFConfig
from gametape.core.segments import Segment
from gametape.train.aims import Aim
from gametape.train.batch import Batch, Line
from gametape.train.seeds import seed_for


class Shelf:
    """The latest targets, each as a line that ends with it."""

    def __init__(self, config: TTFConfig, seed: int) -> None:
        self._replay, self._seed = config.replay, seed
        self._lines: deque[Line] = deque(maxlen=config.stored)

    def filled(self, batch: Batch, step: int) -> Batch:
        """With some of what is here; and what is new in the batch will be here afterwards."""
        if not self._replay:
            return batch
        rng = Random(seed_for(self._seed, "replay", step))
        new = [line for old in batch.lines for line in _targets(old)]
        drawn = rng.sample(list(self._lines), min(round(self._replay * len(new)), len(self._lines)))
        drawn.sort(key=lambda line: line.family)
        self._lines.extend(new)
        return replace(batch, lines=(*batch.lines, *drawn))

    def state(self) -> list[dict[str, Any]]:
        return [asdict(line) for line in self._lines]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        self._lines.clear()
        self._lines.extend(_line(told) for told in state)


def _targets(line: Line) -> list[Line]:
    """What of a line is learned apart from its reward."""
    if line.imitated:
        return [line]
    return [Line(_alone(line.segment, aim), line.family, aims=(aim,)) for aim in line.aims]


def _alone(segment: Segment, aim: Aim) -> Segment:
    """The line up to the end of a target, with nothing else chosen: what else went wrong in it is not to be kept."""
    stop = aim.start + aim.length
    return Segment(
        segment.ids[:stop],
        [*([0] * aim.start), *segment.mask[aim.start : stop]],
        segment.logprobs[:stop],
        segment.policy_versions[:stop],
        segment.steps[:stop],
    )


def _line(told: dict[str, Any]) -> Line:
    aims = tuple(Aim.from_plain(aim) for aim in told["aims"])
    return Line(**told | {"segment": Segment(**told["segment"]), "aims": aims})
