"""Which layers look at an attempt under which profile."""

from collections.abc import Callable
from typing import Literal

from gametape.core.verdict import Check
from gametape.verify.layers import architecture, diff, lint, quality, runtime, tests, types
from gametape.verify.layers.context import ScoringContext

Profile = Literal["train", "full"]
Layer = Callable[[ScoringContext], Check | None]

TRAIN: tuple[Layer, ...] = (
    *(tests.score, tests.unit, tests.integration, tests.behavioural),
    *(runtime.score, architecture.score),
)
"""What costs nothing beside the runs themselves."""

FULL: tuple[Layer, ...] = (*TRAIN, types.score, lint.score, diff.score, quality.score)


def run_layers(context: ScoringContext, profile: Profile) -> list[Check]:
    """The answers of every layer that applies."""
    answers = (layer(context) for layer in (FULL if profile == "full" else TRAIN))
    return [answer for answer in answers if answer is not None]
