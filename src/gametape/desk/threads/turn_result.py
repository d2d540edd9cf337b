"""The result of a message to a thread, read from the record. A message is found by its key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gametape.agent.limits import RolloutUsage
from gametape.agent.recorded_steps import is_answer, message_key, step_text, usage_from_steps
from gametape.agent.replay import active_steps
from gametape.core.step import Step
from gametape.desk.threads.thread_record import ThreadRecord
from gametape.watch.breaker import BREAKER_EVENT

TurnEnd = Literal["answered", "limit", "error", "paused", "cancelled"]
_HALTS = ("pause", "stop")


@dataclass(frozen=True)
class ThreadTurnResult:
    """How a turn ended. `turns`, `tokens` and `cost_usd` are totals of the thread."""

    ended: TurnEnd
    answer: str
    reason: str
    turns: int
    tokens: int
    cost_usd: float
    step: int
    cut_off: int = 0
    """Turns of this answer that the limit of tokens cut off."""
    warnings: tuple[str, ...] = ()
    exit_code: int = 0
    """Where it ended with an error: 3 if something is missing here, else 1."""


def make_turn_result(steps: Sequence[Step], usage: RolloutUsage, ended: TurnEnd, reason: str) -> ThreadTurnResult:
    """The result of a turn that has just ended: these are the steps up to now, and what they used."""
    last = next((step for step in reversed(steps) if step.source == "agent"), None)
    answer = answer_text(last) if last and ended == "answered" else ""
    return ThreadTurnResult(ended, answer, reason, usage.turns, usage.tokens, usage.cost_usd, steps[-1].step_id)


def find_turn_result(record: ThreadRecord, key: str) -> ThreadTurnResult | None:
    """The result of the message with this key, if its turn has ended."""
    message = record.digest.message
    if not record.digest.rewound and message is not None and message.key == key:
        return _turn_result([record.brief(len(record.steps) - 1)], record.digest.usage)
    if not record.knows_message(key):
        return None
    active = active_steps(record.latest(None))
    start = next((number for number, step in enumerate(active) if message_key(step) == key), None)
    if start is None:
        return None
    end = next((number for number in range(start + 1, len(active)) if message_key(active[number])), len(active))
    return _turn_result(active[:end], usage_from_steps(active[:end]))


def _turn_result(steps: Sequence[Step], usage: RolloutUsage) -> ThreadTurnResult | None:
    """The result of the turn that the last of these steps ended, if it ended one."""
    last = steps[-1]
    if is_answer(last):
        return make_turn_result(steps, usage, "answered", "answered")
    if is_halt(last):
        return make_turn_result(steps, usage, "paused", step_text(last))
    return None


def is_halt(step: Step) -> bool:
    """Whether a monitor stopped the agent at this step."""
    return any(
        event.get("kind") == BREAKER_EVENT and event.get("rung") in _HALTS for event in step.gametape_extra.events or ()
    )


def answer_text(step: Step) -> str:
    """The text of an answer, with the summary of `finish` if it was called."""
    called = [call for call in step.tool_calls or [] if call.function_name == "finish"]
    summaries = [str(call.arguments.get("summary", "")) for call in called]
    return "\n\n".join(filter(None, [step_text(step).strip(), *summaries]))
