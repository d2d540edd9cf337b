"""Play a suite: many attempts at once through one model, each kept as it ends."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutEnd, RolloutLimits, RolloutUsage
from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.engines.conversation import Model
from gametape.evals.attempt import EvalAttempt, attempt_from_episode
from gametape.evals.suite import SuiteItem


class ModelProvider(Protocol):
    """Who plays an attempt; see `Cast`."""

    def model_for(self, item: SuiteItem, number: int) -> Model: ...


class AttemptStore(Protocol):
    """Where finished attempts are kept; see `Ledger`."""

    def finished(self, task: str, number: int) -> EvalAttempt | None: ...

    def add(self, attempt: EvalAttempt) -> None: ...


class NullAttemptStore:
    """For runs that nobody goes on with."""

    def finished(self, task: str, number: int) -> EvalAttempt | None:  # noqa: ARG002
        return None

    def add(self, attempt: EvalAttempt) -> None: ...


@dataclass(frozen=True)
class EvalSettings:
    """How a suite is to be played. The seed of each attempt depends on `seed`, its task and its number alone."""

    attempts: int = 1
    """Of each item."""
    jobs: int = 16
    """How many are under way at a time."""
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    limits: RolloutLimits = field(default_factory=RolloutLimits)


AttemptCallback = Callable[[EvalAttempt], None]
EpisodeCallback = Callable[[Episode, Model, int], None]


async def evaluate(
    items: Sequence[SuiteItem],
    models: ModelProvider,
    settings: EvalSettings,
    store: AttemptStore,
    on_attempt: AttemptCallback = lambda _attempt: None,
    on_episode: EpisodeCallback = lambda _played, _model, _number: None,
) -> list[EvalAttempt]:
    """Every attempt that the order asks for, in the order of items: kept ones as they are, all others played."""
    found: dict[tuple[int, int], EvalAttempt] = {}
    waiting = iter([(place, number) for number in range(settings.attempts) for place in range(len(items))])

    async def work() -> None:
        for place, number in waiting:
            item = items[place]
            attempt = store.finished(item.environment.name, number)
            if attempt is None:
                attempt = await _run_attempt(item, models.model_for(item, number), settings, number, on_episode)
                store.add(attempt)
            found[place, number] = attempt
            on_attempt(attempt)

    workers = [asyncio.create_task(work()) for _ in range(settings.jobs)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [found[place, number] for place in range(len(items)) for number in range(settings.attempts)]


async def _run_attempt(
    item: SuiteItem, model: Model, settings: EvalSettings, number: int, on_episode: EpisodeCallback
) -> EvalAttempt:
    """Where the machinery fails, that is the outcome, and says nothing about the policy."""
    environment = item.environment
    sampling = settings.sampling.model_copy(update={"seed": attempt_seed(settings.seed, environment.name, number)})
    setting = rollout_config_for(environment, model, sampling, settings.limits, f"{environment.name}-{number}")
    try:
        played = await run_episode(environment, setting)
    except GametapeError as error:
        played = Episode(environment, (), RolloutEnd("error", str(error)), None, RolloutUsage())
    on_episode(played, model, number)
    return attempt_from_episode(played, item.horizon, number)


def attempt_seed(seed: int, task: str, number: int) -> int:
    digest = hashlib.sha256(f"{seed}/{task}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def error_reasons(attempts: Sequence[EvalAttempt]) -> Iterator[str]:
    """What broke, of attempts that nothing can be said about."""
    return (attempt.reason for attempt in attempts if attempt.passed is None)
