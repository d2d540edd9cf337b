"""Play a suite: many attempts at once through one model, each kept as it ends."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gametape.agent.limits import Limits, Over, Spent
from gametape.agent.playing import Played, play, setting_for
from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.engines.conversation import Model
from gametape.evals.attempt import Attempt, attempt_of
from gametape.evals.suites import Item


class Players(Protocol):
    """Who plays an attempt; see `Cast`."""

    def model(self, item: Item, number: int) -> Model: ...


class Keeper(Protocol):
    """Where finished attempts are kept; see `Ledger`."""

    def judged(self, task: str, number: int) -> Attempt | None: ...

    def add(self, attempt: Attempt) -> None: ...


class Nowhere:
    """For runs that nobody goes on with."""

    def judged(self, task: str, number: int) -> Attempt | None:  # noqa: ARG002
        return None

    def add(self, attempt: Attempt) -> None: ...


@dataclass(frozen=True)
class Order:
    """How a suite is to be played. The seed of each attempt depends on `seed`, its task and its number alone."""

    attempts: int = 1
    """Of each item."""
    jobs: int = 16
    """How many are under way at a time."""
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    limits: Limits = field(default_factory=Limits)


Watcher = Callable[[Attempt], None]
Recorder = Callable[[Played, Model, int], None]


async def evaluate(
    items: Sequence[Item],
    players: Players,
    order: Order,
    keeper: Keeper,
    watch: Watcher = lambda _attempt: None,
    record: Recorder = lambda _played, _model, _number: None,
) -> list[Attempt]:
    """Every attempt that the order asks for, in the order of items: kept ones as they are, all others played."""
    found: dict[tuple[int, int], Attempt] = {}
    waiting = iter([(place, number) for number in range(order.attempts) for place in range(len(items))])

    async def work() -> None:
        for place, number in waiting:
            item = items[place]
            attempt = keeper.judged(item.assignment.name, number)
            if attempt is None:
                attempt = await _attempt(item, players.model(item, number), order, number, record)
                keeper.add(attempt)
            found[place, number] = attempt
            watch(attempt)

    workers = [asyncio.create_task(work()) for _ in range(order.jobs)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [found[place, number] for place in range(len(items)) for number in range(order.attempts)]


async def _attempt(item: Item, model: Model, order: Order, number: int, record: Recorder) -> Attempt:
    """Where the machinery fails, that is the outcome, and says nothing about the policy."""
    assignment = item.assignment
    sampling = order.sampling.model_copy(update={"seed": seed_of(order.seed, assignment.name, number)})
    setting = setting_for(assignment, model, sampling, order.limits, f"{assignment.name}-{number}")
    try:
        played = await play(assignment, setting)
    except GametapeError as error:
        played = Played(assignment, (), Over("error", str(error)), None, Spent())
    record(played, model, number)
    return attempt_of(played, item.horizon, number)


def seed_of(seed: int, task: str, number: int) -> int:
    digest = hashlib.sha256(f"{seed}/{task}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def errors_in(attempts: Sequence[Attempt]) -> Iterator[str]:
    """What broke, of attempts that nothing can be said about."""
    return (attempt.reason for attempt in attempts if attempt.passed is None)
