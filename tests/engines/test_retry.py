import asyncio
from collections.abc import Sequence
from typing import Self

import pytest

from gametape.core.messages import TokenUsage
from gametape.engines.conversation import Reply, ToolDefinition, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.prices import Price
from gametape.engines.retry import Clock, FailedRequest, RetryingConversation, RetryPolicy


class Failing:
    """A conversation that fails as it was told, then answers."""

    length = 0

    def __init__(self, failures: Sequence[Exception]) -> None:
        self.failures = list(failures)

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None: ...

    def add_user_message(self, text: str) -> None: ...

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None: ...

    def replay(self, reply: Reply) -> None: ...

    def fork(self) -> Self:
        return type(self)(self.failures)

    async def ask(self, max_tokens: int) -> Reply:
        if self.failures:
            raise self.failures.pop(0)
        return Reply("done", usage=TokenUsage(prompt_tokens=10, completion_tokens=5, cost_usd=1.0))


class FakeTime:
    def __init__(self, chance: float = 1.0) -> None:
        self.time = 0.0
        self.pauses: list[float] = []
        self.clock = Clock(lambda: self.time, self.sleep, lambda: chance)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


def trouble(kind: str = "server_error", retry_after: float | None = None, wasted: int = 0) -> EngineError:
    return EngineError(kind, "no", retry_after, wasted)  # type: ignore[arg-type]


def test_a_reply_after_failures_says_what_they_cost() -> None:
    failures = [trouble("cut_stream", wasted=7), trouble("timeout", wasted=3)]
    time = FakeTime()
    conversation = RetryingConversation(Failing(failures), RetryPolicy(base_delay=1), Price(output=1e6), time.clock)
    reply = asyncio.run(conversation.ask(100))
    assert reply.usage == TokenUsage(prompt_tokens=10, completion_tokens=15, cost_usd=11.0, seconds=3.0, attempts=3)
    assert conversation.failures == [FailedRequest("cut_stream", 1.0, 7), FailedRequest("timeout", 2.0, 3)]


def test_pauses_grow_to_a_bound_and_are_random() -> None:
    for chance, expected in ((1.0, [1, 2, 4, 5, 5]), (0.5, [0.5, 1, 2, 2.5, 2.5]), (0.0, [0] * 5)):
        time = FakeTime(chance)
        patience = RetryPolicy(max_attempts=6, base_delay=1, max_delay=5)
        conversation = RetryingConversation(Failing([trouble()] * 5), patience, clock=time.clock)
        assert asyncio.run(conversation.ask(1)).text == "done"
        assert time.pauses == expected


def test_giving_up_raises_the_last_trouble_with_every_attempt_on_record() -> None:
    time = FakeTime()
    failures = [trouble("timeout"), trouble("rate_limited"), trouble("garbled")]
    conversation = RetryingConversation(Failing([*failures]), RetryPolicy(max_attempts=3), clock=time.clock)
    with pytest.raises(EngineError) as caught:
        asyncio.run(conversation.ask(1))
    assert caught.value is failures[-1]
    assert [failure.kind for failure in conversation.failures] == ["timeout", "rate_limited", "garbled"]
    assert len(time.pauses) == 2


def test_retry_after_is_honoured_up_to_a_bound() -> None:
    time = FakeTime(0.0)
    conversation = RetryingConversation(Failing([trouble("rate_limited", 20)]), RetryPolicy(), clock=time.clock)
    asyncio.run(conversation.ask(1))
    assert time.pauses == [20]
    with pytest.raises(EngineError):
        asyncio.run(
            RetryingConversation(Failing([trouble("rate_limited", 61)]), RetryPolicy(), clock=time.clock).ask(1)
        )


def test_no_pause_goes_past_the_total() -> None:
    time = FakeTime()
    patience = RetryPolicy(max_attempts=1000, base_delay=10, max_delay=10, max_total_seconds=35)
    with pytest.raises(EngineError):
        asyncio.run(RetryingConversation(Failing([trouble()] * 999), patience, clock=time.clock).ask(1))
    assert time.pauses == [10, 10, 10]


@pytest.mark.parametrize("final", [trouble("refused"), ContextTooLong("full")])
def test_what_does_not_pass_is_not_retried(final: Exception) -> None:
    time = FakeTime()
    with pytest.raises(type(final)):
        asyncio.run(RetryingConversation(Failing([final]), RetryPolicy(), clock=time.clock).ask(1))
    assert time.pauses == []


def test_failures_are_those_of_the_last_question() -> None:
    time = FakeTime()
    conversation = RetryingConversation(Failing([trouble()]), RetryPolicy(), clock=time.clock)
    asyncio.run(conversation.ask(1))
    assert len(conversation.failures) == 1
    assert asyncio.run(conversation.ask(1)).usage.attempts == 1
    assert conversation.failures == []
