"""Which layers score a submission under which profile."""

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
"""The layers that cost nothing beside the runs themselves."""

FULL: tuple[Layer, ...] = (*TRAIN, types.score, lint.score, diff.score, quality.score)


def run_layers(context: ScoringContext, profile: Profile) -> list[Check]:
    """The checks of every layer that applies."""
    checks = (layer(context) for layer in (FULL if profile == "full" else TRAIN))
    return [check for check in checks if check is not None]
