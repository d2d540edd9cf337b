"""What a thread may still take, and whether it may be spoken to at all."""

from collections.abc import Sequence

from gametape.agent.limits import Limits
from gametape.agent.recording import spent_in
from gametape.core.step import Step
from gametape.desk.threads.answers import key_of
from gametape.desk.threads.thread import Refused, Thread

TURNS = 50
SECONDS = 3600.0
"""What the agent has for one answer."""


def check_open(thread: Thread, steps: Sequence[Step], anyway: bool = False) -> None:
    """Raises `Refused` where nothing may be said to a thread as it is; `anyway` goes on with one that is paused."""
    name = thread.thread_id
    if thread.archived:
        raise Refused(f"{name} is archived; fork it to go on")
    if thread.paused and not anyway:
        raise Refused(f"{name} is paused: {thread.paused}; look at it, then say it with --anyway")
    spent = spent_in(steps)
    if thread.budget_tokens is not None and spent.tokens >= thread.budget_tokens:
        raise Refused(f"{name} has spent its budget: {spent.tokens} of {thread.budget_tokens} tokens; fork it to go on")
    if thread.budget_usd is not None and spent.cost_usd >= thread.budget_usd:
        raise Refused(f"{name} has spent its budget: ${spent.cost_usd:.4f} of ${thread.budget_usd:g}; fork it to go on")


def limits_of(thread: Thread, steps: Sequence[Step], key: str, tokens: int | None, usd: float | None) -> Limits:
    """Turns and time are those of the answer to `key`, tokens and money those of the thread's life: but this answer
    may have a budget of its own."""
    before = spent_in(steps[: next(number for number, step in enumerate(steps) if key_of(step) == key)])
    most_tokens = [before.tokens + tokens if tokens else None, thread.budget_tokens]
    most_usd = [before.cost_usd + usd if usd else None, thread.budget_usd]
    return Limits(
        turns=before.turns + TURNS,
        wall_seconds=before.earlier_seconds + SECONDS,
        tokens=min((most for most in most_tokens if most is not None), default=None),
        cost_usd=min((most for most in most_usd if most is not None), default=None),
    )
