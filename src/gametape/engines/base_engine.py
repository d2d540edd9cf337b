"""The methods of `PolicyEngine` for engines to which they mean nothing, so that no caller asks whether one is there."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from gametape.core.messages import Sampling
from gametape.engines.errors import ScoringUnsupported


class BaseEngine:
    """To be derived from. It neither scores nor caches, and takes every request when it comes."""

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = Sampling()) -> list[float]:  # noqa: ARG002, B008 - frozen
        """Raises `ScoringUnsupported`: this engine cannot give the log-probabilities of given ids."""
        raise ScoringUnsupported(f"{type(self).__name__} cannot score given tokens")

    def weights_changed(self, version: int) -> None:
        """Does nothing: no trainer changes the weights of this engine in place."""

    def forget(self) -> None:
        """Does nothing: what this engine answers does not depend on what it has read before."""

    def participant(self) -> AbstractContextManager[None]:
        """Does nothing: this engine waits for nobody before it answers a request."""
        return nullcontext()
