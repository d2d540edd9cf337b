"""Recorders of steps, and the conversion between turns of the loop and steps of a trajectory, in both directions."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from gametape.agent.events import RolloutEvent
from gametape.agent.limits import RolloutUsage
from gametape.agent.tool_router import RoutedTurn
from gametape.core.atif import Agent, Extra, FinalMetrics, ToolCall
from gametape.core.protocols import Tool
from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.core.version import VERSION
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.record.journal import Journal


class StepRecorder(Protocol):
    """Stores the steps of a rollout. When `append` returns, the step is as durable as this recorder makes it."""

    @property
    def steps(self) -> Sequence[Step]: ...

    async def append(self, step: Step) -> None: ...


class MemoryRecorder:
    """In memory, for rollouts that are not needed if the process dies, as in training."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._steps = list(steps)

    @property
    def steps(self) -> Sequence[Step]:
        return self._steps

    async def append(self, step: Step) -> None:
        self._steps.append(step)


class JournalRecorder:
    """In a journal on disk: a step is written before the next turn begins."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._steps = list(journal.trajectory.steps)

    @property
    def steps(self) -> Sequence[Step]:
        return self._steps

    async def append(self, step: Step) -> None:
        """A cancellation waits for the write, so a step that is on disk is also in `steps`."""
        saving = asyncio.ensure_future(asyncio.to_thread(self.journal.append, step))
        try:
            await asyncio.shield(saving)
        finally:
            await saving
            self._steps.append(step)


def new_trajectory(
    name: str,
    model_name: str | None,
    extra: Extra,
    tools: Iterable[Tool] = (),
    agent_extra: Extra | None = None,
    steps: Iterable[Step] = (),
) -> Trajectory:
    """A new trajectory. `agent_extra` describes the agent, `extra` the attempt."""
    return Trajectory(
        schema_version=ATIF_VERSION,
        session_id=name,
        trajectory_id=name,
        agent=Agent(
            name="gametape",
            version=VERSION,
            model_name=model_name,
            tool_definitions=[{"type": "function", "function": tool.definition} for tool in tools] or None,
            extra={"gametape": agent_extra} if agent_extra else None,
        ),
        steps=list(steps),
        extra={"attempt_id": name, **extra},
    )


def message_step(number: int, source: str, text: str, **extra: Any) -> Step:
    """A step of the source `system` or `user`. `extra` goes to `extra.gametape`."""
    document: dict[str, Any] = {"step_id": number, "timestamp": _now(), "source": source, "message": text}
    if extra:
        document["extra"] = {"gametape": extra}
    return Step.model_validate(document)


def turn_step(number: int, reply: Reply, routed: RoutedTurn, events: Sequence[RolloutEvent], **extra: Any) -> Step:
    """A whole turn as a step: reply, tool calls, results, metrics and tokens. `extra` goes to `extra.gametape`."""
    usage = reply.usage
    metrics: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
        "extra": {"seconds": round(usage.seconds, 6), "attempts": usage.attempts}
        | {name: count for name in ("written_tokens", "reasoning_tokens") if (count := getattr(usage, name))},
    }
    extra |= {"finish": reply.finish}
    if reply.constrained:
        extra["constrained"] = True
    if reply.warnings:
        extra["warnings"] = list(reply.warnings)
    extra["reasoning_state"] = reply.reasoning_state
    if events:
        extra["events"] = [event.to_dict() for event in events]
    document: dict[str, Any] = {
        "step_id": number,
        "timestamp": _now(),
        "source": "agent",
        "message": reply.text,
        "metrics": metrics,
        "extra": {"gametape": {key: value for key, value in extra.items() if value is not None}},
    }
    if reply.model_name:
        document["model_name"] = reply.model_name
    if reply.reasoning:
        document["reasoning_content"] = reply.reasoning
    if reply.calls:
        document["tool_calls"] = [_recorded_call(call, call_id(number, at)) for at, call in enumerate(reply.calls)]
    results = [_result(answer, call_id(number, at)) for at, answer in enumerate(routed.answers)]
    if routed.notice:
        results.append({"content": routed.notice})
    if results:
        document["observation"] = {"results": results}
    step = Step.model_validate(document)
    return step.with_tokens(reply.tokens) if reply.tokens is not None else step


def call_id(step: int, position: int) -> str:
    return f"call_{step}_{position}"


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


def _recorded_call(call: Call, number: str) -> dict[str, Any]:
    """Calls are numbered in the record; the server's own id is kept beside that, because later turns refer to it."""
    document: dict[str, Any] = {"tool_call_id": number, "function_name": call.name, "arguments": call.arguments}
    return document | {"extra": {"server_id": call.id}} if call.id and call.id != number else document


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
        if step.source != "agent":
            continue
        usage.turns += not step.gametape_extra.summary
        usage.cut_off += was_cut_off(step)
        if step.is_copied_context:
            continue
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
    return usage


def final_metrics(usage: RolloutUsage, steps: int) -> FinalMetrics:
    return FinalMetrics(
        total_prompt_tokens=usage.prompt_tokens,
        total_completion_tokens=usage.completion_tokens,
        total_cached_tokens=usage.cached_tokens,
        total_cost_usd=usage.cost_usd,
        total_steps=steps,
        extra={"tool_seconds": round(usage.tool_seconds, 3), "cpu_seconds": round(usage.cpu_seconds, 3)},
    )


def _result(answer: ToolResponse, source: str) -> dict[str, Any]:
    result: dict[str, Any] = {"source_call_id": source, "content": answer.content}
    return result | {"extra": {"failed": True}} if answer.failed else result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
