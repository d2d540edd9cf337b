"""Asking again when no answer came: bounded in number and in time, with growing random pauses, and charged.

A conversation is unchanged by a failed `ask`, so asking again asks the same. Trouble that does not pass is not retried.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Self

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation, ConversationWrapper, Model, Reply
from gametape.engines.errors import EngineError, EngineErrorKind
from gametape.engines.prices import FREE, Price


@dataclass(frozen=True)
class FailedRequest:
    """An attempt that brought no answer: why, how long we waited after it, and the tokens that were lost with it."""

    kind: EngineErrorKind
    waited_seconds: float
    wasted_tokens: int

    def __str__(self) -> str:
        lost = f", {self.wasted_tokens} tokens lost" if self.wasted_tokens else ""
        return f"{self.kind}: waited {self.waited_seconds:.1f} s{lost}"


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try. The pause after the n-th failure is random, up to `pause * 2**(n-1)` seconds."""

    max_attempts: int = 5
    base_delay: float = 0.5
    max_delay: float = 30.0
    max_retry_after: float = 60.0
    """A server that wants us to wait longer than this is not waited for."""
    max_total_seconds: float = 600.0
    """No pause that would end later than this is begun."""


@dataclass(frozen=True)
class Clock:
    """Time and chance, so that tests need neither."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


class RetryingConversation(ConversationWrapper):
    """A conversation whose `ask` is tried again. `failures` are the attempts since the last `ask` began that failed.

    A reply that took several attempts says so in its usage, with the lost tokens and their price.
    """

    def __init__(
        self, inner: Conversation, policy: RetryPolicy, price: Price = FREE, clock: Clock | None = None
    ) -> None:
        super().__init__(inner)
        self._patience = policy
        self._price = price
        self._clock = clock or Clock()
        self.failures: list[FailedRequest] = []

    def fork(self) -> Self:
        return type(self)(self._inner.fork(), self._patience, self._price, self._clock)

    async def ask(self, max_tokens: int) -> Reply:
        self.failures = []
        began = self._clock.now()
        while True:
            try:
                return self._charged(await self._inner.ask(max_tokens), self._clock.now() - began)
            except EngineError as trouble:
                pause = self._pause(trouble, self._clock.now() - began)
                self.failures.append(FailedRequest(trouble.kind, pause or 0.0, trouble.wasted_tokens))
                if pause is None:
                    raise
                await self._clock.sleep(pause)

    def _pause(self, trouble: EngineError, elapsed: float) -> float | None:
        """How long to wait before asking again; None to give up."""
        patience, failed = self._patience, len(self.failures) + 1
        if not trouble.retryable or failed >= patience.max_attempts:
            return None
        ceiling = min(patience.max_delay, patience.base_delay * 2 ** (failed - 1))
        pause = ceiling * self._clock.random()
        if trouble.retry_after is not None:
            if trouble.retry_after > patience.max_retry_after:
                return None
            pause = max(pause, trouble.retry_after)
        return pause if elapsed + pause <= patience.max_total_seconds else None

    def _charged(self, reply: Reply, seconds: float) -> Reply:
        if not self.failures:
            return reply
        wasted = sum(failure.wasted_tokens for failure in self.failures)
        usage = reply.usage.model_copy(
            update={
                "completion_tokens": reply.usage.completion_tokens + wasted,
                "cost_usd": reply.usage.cost_usd + self._price.cost(0, wasted),
                "seconds": seconds,
                "attempts": reply.usage.attempts + len(self.failures),
            }
        )
        return replace(reply, usage=usage)


class RetryingModel:
    """A model all of whose conversations are tried again."""

    def __init__(self, inner: Model, policy: RetryPolicy, price: Price = FREE, clock: Clock | None = None) -> None:
        self.inner = inner
        self._patience = policy
        self._price = price
        self._clock = clock

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def local(self) -> bool:
        return self.inner.local

    @property
    def trainable(self) -> bool:
        return self.inner.trainable

    @property
    def window(self) -> int:
        return self.inner.window

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> RetryingConversation:
        inner = self.inner.start_conversation(sampling, conversation_id, constrain)
        return RetryingConversation(inner, self._patience, self._price, self._clock)

    async def close(self) -> None:
        await self.inner.close()
