"""The result of a message to a thread, read from the record. A message is found by its key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gametape.agent.recorder import recorded_answers, step_text, usage_from_steps
from gametape.agent.replay import active_steps
from gametape.core.step import Step
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


def message_key(step: Step) -> str | None:
    """The key of the message in a step; None for a step that is no message."""
    return (step.gametape_extra.model_extra or {}).get("key")


def make_turn_result(steps: Sequence[Step], ended: TurnEnd, reason: str) -> ThreadTurnResult:
    usage = usage_from_steps(steps)
    last = next((step for step in reversed(steps) if step.source == "agent"), None)
    answer = answer_text(last) if last and ended == "answered" else ""
    return ThreadTurnResult(ended, answer, reason, usage.turns, usage.tokens, usage.cost_usd, steps[-1].step_id)


def find_turn_result(steps: Sequence[Step], key: str) -> ThreadTurnResult | None:
    """The result of the message with this key, if its turn has ended."""
    active = active_steps(steps)
    start = next((number for number, step in enumerate(active) if message_key(step) == key), None)
    if start is None:
        return None
    end = next((number for number in range(start + 1, len(active)) if message_key(active[number])), len(active))
    last = active[end - 1]
    if is_answer(last):
        return make_turn_result(active[:end], "answered", "answered")
    if is_halt(last):
        return make_turn_result(active[:end], "paused", step_text(last))
    return None


def is_answer(step: Step) -> bool:
    """Whether a step is an answer: text without a tool call, or a call of `finish`."""
    if step.source != "agent" or step.gametape_extra.summary:
        return False
    answers, notices = recorded_answers(step)
    finished = any(answer.call.name == "finish" and not answer.failed for answer in answers)
    return finished or not (step.tool_calls or notices)


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
