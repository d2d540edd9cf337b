"""Trajectories as OpenTelemetry spans, named as its conventions for generative models name them.

One trace for each trajectory: `invoke_agent` around a `chat` span for each turn and an `execute_tool` span for each of
its calls. Ids are derived from the trajectory's own, so what is sent twice is the same trace. Texts, arguments and
results are not sent.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.record.installation import install_extra
from gametape.watch.observed_step import parse_seconds

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

Attributes = dict[str, str | int | float]
_SECONDS = 10


@dataclass(frozen=True)
class TraceSpan:
    """One span, independent of the SDK: times are nanoseconds since the epoch, `parent` is a span's key."""

    key: str
    name: str
    start: int
    end: int
    attributes: Attributes
    parent: str | None = None
    client: bool = False
    failed: bool = False


def trace_spans(trajectory: Trajectory, parent: str | None = None) -> Iterator[TraceSpan]:
    """The spans of a trajectory, its subagents' below its own."""
    identity = trajectory.trajectory_id or trajectory.session_id or "trajectory"
    agent = trajectory.agent
    times = [when for step in trajectory.steps if (when := _nanoseconds(step)) is not None]
    start, end = (min(times), max(times)) if times else (0, 0)
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.name,
        "gen_ai.agent.version": agent.version,
        "gen_ai.conversation.id": trajectory.session_id or identity,
    }
    if agent.model_name:
        attributes["gen_ai.request.model"] = agent.model_name
    if trajectory.outcome:
        attributes["gametape.outcome"] = trajectory.outcome
    failed = trajectory.outcome == "error"
    yield TraceSpan(identity, f"invoke_agent {agent.name}", start, end, attributes, parent, failed=failed)
    before = start
    for step in trajectory.steps:
        when = _nanoseconds(step) or before
        if step.source == "agent" and not step.is_copied_context:
            yield from _turn(step, trajectory, identity, before, when)
        before = when
    for sub in trajectory.subagent_trajectories or []:
        yield from trace_spans(sub, identity)


def _turn(step: Step, trajectory: Trajectory, identity: str, start: int, end: int) -> Iterator[TraceSpan]:
    model = step.model_name or trajectory.agent.model_name or "unknown"
    metrics = step.metrics
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
        "gen_ai.conversation.id": trajectory.session_id or identity,
    }
    counts = {"input_tokens": metrics.prompt_tokens, "output_tokens": metrics.completion_tokens} if metrics else {}
    attributes |= {f"gen_ai.usage.{name}": count for name, count in counts.items() if count is not None}
    key = f"{identity}/{step.step_id}"
    yield TraceSpan(key, f"chat {model}", start, end, attributes, identity, client=True)
    failed = {
        result.source_call_id
        for result in (step.observation.results if step.observation else [])
        if (result.extra or {}).get("failed")
    }
    for at, call in enumerate(step.tool_calls or []):
        yield TraceSpan(
            f"{key}/{at}",
            f"execute_tool {call.function_name}",
            end,
            end,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.function_name,
                "gen_ai.tool.call.id": call.tool_call_id,
            },
            identity,
            failed=call.tool_call_id in failed,
        )


def _nanoseconds(step: Step) -> int | None:
    seconds = parse_seconds(step.timestamp)
    return None if seconds is None else max(0, int(seconds * 1e9))


def export_traces(trajectories: list[Trajectory], url: str) -> int:
    """Send trajectories to an OTLP receiver over HTTP. Returns the number of spans."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415
    except ImportError:
        raise MissingDependency(f"OpenTelemetry is not installed: {install_extra('otel')}") from None
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url}: expected the http or https address of an OTLP receiver")
    exporter = OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces", timeout=_SECONDS)
    sent = 0
    try:
        for trajectory in trajectories:
            spans = _readable(list(trace_spans(trajectory)))
            if exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise MissingDependency(f"{url}: no OTLP receiver took the spans there")
            sent += len(spans)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return sent


def _readable(spans: list[TraceSpan]) -> "list[ReadableSpan]":
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags  # noqa: PLC0415

    trace = _id(spans[0].key, 16)
    resource = Resource({"service.name": "gametape"})
    scope = InstrumentationScope("gametape")

    def context(key: str) -> SpanContext:
        return SpanContext(trace, _id(f"span {key}", 8), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    return [
        ReadableSpan(
            name=span.name,
            context=context(span.key),
            parent=context(span.parent) if span.parent else None,
            resource=resource,
            attributes=span.attributes,
            kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=scope,
        )
        for span in spans
    ]


def _id(key: str, size: int) -> int:
    """An id derived from a key; never zero, which is not a valid id."""
    return int.from_bytes(hashlib.sha256(key.encode(errors="replace")).digest()[:size], "big") or 1
