"""Retries of `Conversation.ask`: bounded in number and in time, with growing random delays, and charged to the reply.

A failed `ask` leaves the conversation unchanged, so a retry sends the same request. Errors that are not `retryable` are
raised at once. tenacity would be no shorter: its wait and stop hooks cannot share one decision (Retry-After, deadline,
the recorded delay) and its deadlines read `time.monotonic`, which the test clock replaces here.
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
    """An attempt that failed: why, how long we waited after it, and the tokens that were lost with it."""

    kind: EngineErrorKind
    waited_seconds: float
    wasted_tokens: int

    def __str__(self) -> str:
        lost = f", {self.wasted_tokens} tokens lost" if self.wasted_tokens else ""
        return f"{self.kind}: waited {self.waited_seconds:.1f} s{lost}"


@dataclass(frozen=True)
class RetryPolicy:
    """When to give up. The delay after the n-th failure is random, up to `base_delay * 2**(n-1)` seconds."""

    max_attempts: int = 5
    base_delay: float = 0.5
    max_delay: float = 30.0
    max_retry_after: float = 60.0
    """A server that asks for a longer wait than this is not waited for."""
    max_total_seconds: float = 600.0
    """No delay that would end later than this is begun."""


@dataclass(frozen=True)
class Clock:
    """Time and random numbers, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


class RetryingConversation(ConversationWrapper):
    """A conversation that retries `ask`. `failures` are the failed attempts of the last `ask`.

    The usage of a reply that took several attempts counts them, with the lost tokens and their price.
    """

    def __init__(
        self, inner: Conversation, policy: RetryPolicy, price: Price = FREE, clock: Clock | None = None
    ) -> None:
        super().__init__(inner)
        self._policy = policy
        self._price = price
        self._clock = clock or Clock()
        self.failures: list[FailedRequest] = []

    def fork(self) -> Self:
        return type(self)(self._inner.fork(), self._policy, self._price, self._clock)

    async def ask(self, max_tokens: int) -> Reply:
        self.failures = []
        began = self._clock.now()
        while True:
            try:
                return self._charged(await self._inner.ask(max_tokens), self._clock.now() - began)
            except EngineError as error:
                delay = self._delay(error, self._clock.now() - began)
                self.failures.append(FailedRequest(error.kind, delay or 0.0, error.wasted_tokens))
                if delay is None:
                    raise
                await self._clock.sleep(delay)

    def _delay(self, error: EngineError, elapsed: float) -> float | None:
        """Seconds to wait before the next attempt; None to give up."""
        policy, failed = self._policy, len(self.failures) + 1
        if not error.retryable or failed >= policy.max_attempts:
            return None
        ceiling = min(policy.max_delay, policy.base_delay * 2 ** (failed - 1))
        delay = ceiling * self._clock.random()
        if error.retry_after is not None:
            if error.retry_after > policy.max_retry_after:
                return None
            delay = max(delay, error.retry_after)
        return delay if elapsed + delay <= policy.max_total_seconds else None

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
    """A model whose conversations retry."""

    def __init__(self, inner: Model, policy: RetryPolicy, price: Price = FREE, clock: Clock | None = None) -> None:
        self.inner = inner
        self.name, self.local, self.trainable = inner.name, inner.local, inner.trainable
        self._policy, self._price, self._clock = policy, price, clock

    @property
    def window(self) -> int:
        return self.inner.window

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> RetryingConversation:
        inner = self.inner.start_conversation(sampling, conversation_id, constrain)
        return RetryingConversation(inner, self._policy, self._price, self._clock)

    async def close(self) -> None:
        await self.inner.close()
