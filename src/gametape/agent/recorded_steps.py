"""What recorded steps say: the model's reply, the results of its calls, what was used, and who asked what."""

from collections import Counter
from collections.abc import Iterable

from gametape.agent.limits import RolloutUsage
from gametape.core.atif import ToolCall
from gametape.core.step import Step
from gametape.engines.conversation import Call, Reply, ToolResponse


def recorded_reply(step: Step) -> Reply:
    """The model's reply of a recorded turn."""
    return Reply(
        text=step_text(step),
        calls=tuple(_replayed_call(call) for call in step.tool_calls or []),
        tokens=step.tokens(),
        model_name=step.model_name,
        reasoning=step.reasoning_content or "",
        reasoning_state=step.gametape_extra.reasoning_state,
    )


def recorded_answers(step: Step) -> tuple[list[ToolResponse], list[str]]:
    """The tool results of a recorded turn, and the notices where there was no call to answer."""
    calls = {call.tool_call_id: _replayed_call(call) for call in step.tool_calls or []}
    answers, notices = [], []
    for result in step.observation.results if step.observation else []:
        content = result.content if isinstance(result.content, str) else ""
        if result.source_call_id is None:
            notices.append(content)
        else:
            failed = bool((result.extra or {}).get("failed"))
            answers.append(ToolResponse(calls[result.source_call_id], content, failed))
    return answers, notices


def _replayed_call(call: ToolCall) -> Call:
    given = (call.extra or {}).get("server_id")
    return Call(call.function_name, call.arguments, given if isinstance(given, str) and given else call.tool_call_id)


def step_text(step: Step) -> str:
    return step.message if isinstance(step.message, str) else "".join(part.text or "" for part in step.message)


def was_cut_off(step: Step) -> bool:
    """Whether the limit of tokens cut this turn off."""
    return step.source == "agent" and (step.gametape_extra.model_extra or {}).get("finish") == "length"


def usage_from_steps(steps: Iterable[Step]) -> RolloutUsage:
    """The usage of a recorded rollout. Turns copied from another rollout count as turns and cost nothing."""
    usage = RolloutUsage()
    for step in steps:
        add_usage(usage, step)
    return usage


def add_usage(usage: RolloutUsage, step: Step) -> None:
    """Count one more recorded step."""
    if step.source != "agent":
        return
    usage.turns += not step.gametape_extra.summary
    usage.cut_off += was_cut_off(step)
    if step.is_copied_context:
        return
    metrics = step.metrics
    if metrics:
        usage.prompt_tokens += metrics.prompt_tokens or 0
        usage.completion_tokens += metrics.completion_tokens or 0
        usage.cached_tokens += metrics.cached_tokens or 0
        usage.cost_usd += metrics.cost_usd or 0.0
    usage.calls += Counter(call.function_name for call in step.tool_calls or [])
    extra = step.gametape_extra.model_extra or {}
    usage.earlier_seconds = extra.get("seconds", usage.earlier_seconds)
    usage.tool_seconds = extra.get("tool_seconds", usage.tool_seconds)
    usage.cpu_seconds = extra.get("cpu_seconds", usage.cpu_seconds)


def message_key(step: Step) -> str | None:
    """The key of a person's message in a step; None for a step that is no message."""
    key: str | None = (step.gametape_extra.model_extra or {}).get("key")
    return key


def is_answer(step: Step) -> bool:
    """Whether a step is an answer: text without a tool call, or a call of `finish`."""
    if step.source != "agent" or step.gametape_extra.summary:
        return False
    answers, notices = recorded_answers(step)
    finished = any(answer.call.name == "finish" and not answer.failed for answer in answers)
    return finished or not (step.tool_calls or notices)
