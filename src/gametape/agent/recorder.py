"""Recorders of steps, and the conversion between turns of the loop and steps of a trajectory, in both directions."""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from gametape.agent.events import RolloutEvent
from gametape.agent.limits import RolloutUsage
from gametape.agent.record_digest import DigestFile, RecordDigest
from gametape.agent.tool_router import RoutedTurn
from gametape.core.atif import Agent, Extra, FinalMetrics
from gametape.core.protocols import Tool
from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.core.version import VERSION
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.record.errors import OutOfDiskSpace
from gametape.record.journal import Journal
from gametape.record.journal_steps import JournalSteps

_STEPS_PER_DIGEST = 64


class StepRecorder(Protocol):
    """Stores the steps of a rollout. When `append` returns, the step is as durable as this recorder makes it."""

    @property
    def steps(self) -> Sequence[Step]: ...

    @property
    def digest(self) -> RecordDigest: ...

    async def append(self, step: Step) -> None: ...


class MemoryRecorder:
    """In memory, for rollouts that are not needed if the process dies, as in training."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._steps = list(steps)
        self.digest = RecordDigest.of(self._steps)

    @property
    def steps(self) -> Sequence[Step]:
        return self._steps

    async def append(self, step: Step) -> None:
        self._steps.append(step)
        self.digest.add(step)


class JournalRecorder:
    """In a journal on disk: a step is written before the next turn begins. With a digest file, the digest is taken from
    it, and stored in it after so many steps and by `save_digest`."""

    def __init__(self, journal: Journal, digest_file: DigestFile | None = None) -> None:
        self.journal = journal
        self._digest_file = digest_file
        steps = journal.steps
        if digest_file is not None and isinstance(steps, JournalSteps):
            self.digest = digest_file.load(steps)
        else:
            self.digest = RecordDigest.of(steps)

    @property
    def steps(self) -> Sequence[Step]:
        return self.journal.steps

    async def append(self, step: Step) -> None:
        """A cancellation waits for the write, so a step that is on disk is also in `steps`."""
        saving = asyncio.ensure_future(asyncio.to_thread(self.journal.append, step))
        try:
            await asyncio.shield(saving)
        finally:
            await saving
            self.digest.add(step)
            if self.digest.steps % _STEPS_PER_DIGEST == 0:
                self.save_digest()

    def save_digest(self) -> None:
        """Store the digest. It can be made again from the journal, so a disk without room for it is no failure."""
        steps = self.journal.steps
        if self._digest_file is not None and isinstance(steps, JournalSteps):
            with contextlib.suppress(OutOfDiskSpace):
                self._digest_file.save(self.digest, steps)


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


def _recorded_call(call: Call, number: str) -> dict[str, Any]:
    """Calls are numbered in the record; the server's own id is kept beside that, because later turns refer to it."""
    document: dict[str, Any] = {"tool_call_id": number, "function_name": call.name, "arguments": call.arguments}
    return document | {"extra": {"server_id": call.id}} if call.id and call.id != number else document


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
