"""Evaluate a suite: run many attempts at once through one model, and store each one as it ends."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.engines.conversation import Model
from gametape.evals.attempt import EvalAttempt, attempt_from_episode
from gametape.evals.suite import SuiteItem


class ModelProvider(Protocol):
    """Gives the model for an attempt; `ModelSelector` is one."""

    def model_for(self, item: SuiteItem, number: int) -> Model: ...


class AttemptStore(Protocol):
    """Stores finished attempts; `AttemptLog` is one."""

    def finished(self, task: str, number: int) -> EvalAttempt | None: ...

    def add(self, attempt: EvalAttempt) -> None: ...


class NullAttemptStore:
    """Stores nothing: for runs that are not resumed."""

    def finished(self, task: str, number: int) -> EvalAttempt | None:  # noqa: ARG002
        return None

    def add(self, attempt: EvalAttempt) -> None: ...


@dataclass(frozen=True)
class EvalSettings:
    """How a suite is run. The seed of each attempt depends on `seed`, its task and its number alone."""

    attempts: int = 1
    """Per item."""
    jobs: int = 16
    """The number of attempts that run at once."""
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
    on_episode: EpisodeCallback = lambda _episode, _model, _number: None,
) -> list[EvalAttempt]:
    """All attempts, in the order of items. Those that are in the store are taken from it, all others are run."""
    finished: dict[tuple[int, int], EvalAttempt] = {}
    waiting = iter([(index, number) for number in range(settings.attempts) for index in range(len(items))])

    async def work() -> None:
        for index, number in waiting:
            item = items[index]
            attempt = store.finished(item.environment.name, number)
            if attempt is None:
                attempt = await _run_attempt(item, models.model_for(item, number), settings, number, on_episode)
                store.add(attempt)
            finished[index, number] = attempt
            on_attempt(attempt)
            await asyncio.sleep(0)  # an attempt in memory may never wait, and then nobody could cancel

    workers = [asyncio.create_task(work()) for _ in range(settings.jobs)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [finished[index, number] for index in range(len(items)) for number in range(settings.attempts)]


async def _run_attempt(
    item: SuiteItem, model: Model, settings: EvalSettings, number: int, on_episode: EpisodeCallback
) -> EvalAttempt:
    environment = item.environment
    sampling = settings.sampling.model_copy(update={"seed": attempt_seed(settings.seed, environment.name, number)})
    config = rollout_config_for(environment, model, sampling, settings.limits, f"{environment.name}-{number}")
    episode = await run_episode(environment, config, infra_error=GametapeError)
    on_episode(episode, model, number)
    return attempt_from_episode(episode, item.horizon, number)


def attempt_seed(seed: int, task: str, number: int) -> int:
    digest = hashlib.sha256(f"{seed}/{task}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class NoAttemptEnded(GametapeError):
    """Every attempt was broken off, so there is nothing to report. Exit code 3 where something is missing here."""

    def __init__(self, attempts: Sequence[EvalAttempt]) -> None:
        super().__init__(f"no attempt ended: {attempts[0].reason}")
        self.exit_code = attempts[0].exit_code
