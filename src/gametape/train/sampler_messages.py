"""What a process that samples rollouts and the one that trains say to each other, whatever carries it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gametape.core.errors import GametapeError
from gametape.train.activity import ActivityReport
from gametape.train.rollouts import PromptRequest, RolloutGroup


@dataclass(frozen=True)
class WeightsReady:
    """Weights of a version lie at a place that the link between the two knows."""

    version: int
    place: Any


@dataclass(frozen=True)
class ExpectedRequests:
    """Requests that will probably come next."""

    requests: tuple[PromptRequest, ...]


@dataclass(frozen=True)
class KnownToAnnotator:
    """What the coach of an earlier process knew."""

    state: Mapping[str, Any]


SamplerOrder = PromptRequest | WeightsReady | KnownToAnnotator | ExpectedRequests


@dataclass(frozen=True)
class FinishedGroup:
    """A group, and what its coach knows after it."""

    group: RolloutGroup
    annotator: Mapping[str, Any]


@dataclass(frozen=True)
class SamplerFailure:
    """The sampling process ended, for this reason."""

    reason: str
    refused: int = 0
    """The exit code for it, where the process refused to begin or to go on and said so itself."""


SamplerAnswer = FinishedGroup | ActivityReport | WeightsReady | SamplerFailure
"""Weights come back when they have been read."""


class SamplerEnded(GametapeError):
    """The process that samples rollouts has ended. What it refused is told as it would be in this process."""

    def __init__(self, failure: SamplerFailure) -> None:
        ended = f"the process that samples rollouts ended: {failure.reason}; --resume goes on"
        super().__init__(failure.reason if failure.refused else ended)
        self.exit_code = failure.refused or 3
