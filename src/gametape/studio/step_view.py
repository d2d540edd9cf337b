"""One step of a trajectory as people are shown it: message, reasoning, calls with their results, and marks.

It is made from plain data, and of any maker's step: a field of an unexpected type is left out or shown as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["note", "warning", "bad", "good"]

_CUT_OFF = ("length", "max_tokens")
"""How servers say that a reply reached the limit of its tokens."""
_QUIET_EVENTS = frozenset({"compaction", "checkpoint_dropped"})
MOST_LEVELS = 100
"""Of nesting in what is shown; what lies deeper is left out."""
_MOST = 10**15
"""No count and no amount of a record is as large."""


@dataclass(frozen=True)
class StepMark:
    """Something to notice at a step: a hint, a flag, a nudge, a turn that was cut off."""

    kind: str
    text: str
    level: Level = "warning"


@dataclass(frozen=True)
class CallView:
    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True)
class ResultView:
    """`call_id` is empty where no call is answered. `subagents` names trajectories."""

    call_id: str
    text: str
    failed: bool
    subagents: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepView:
    """`turn` is the number of the agent's turn that this step is, or that it comes before."""

    number: int
    turn: int
    source: str
    text: str
    reasoning: str = ""
    calls: tuple[CallView, ...] = ()
    results: tuple[ResultView, ...] = ()
    marks: tuple[StepMark, ...] = ()
    time: str = ""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    copied: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The rest of `extra.gametape`."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "step": self.number,
            "turn": self.turn,
            "source": self.source,
            "time": self.time or None,
            "model": self.model or None,
            "text": self.text,
            "reasoning": self.reasoning or None,
            "calls": [{"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in self.calls],
            "results": [
                {
                    "call": result.call_id or None,
                    "text": result.text,
                    "failed": result.failed,
                    "subagents": [*result.subagents],
                }
                for result in self.results
            ],
            "marks": [{"kind": mark.kind, "text": mark.text, "level": mark.level} for mark in self.marks],
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_tokens": self.cached_tokens,
            "cost_usd": self.cost_usd,
        }


def view_step(step: Mapping[str, Any], number: int, turn: int, more_marks: tuple[StepMark, ...] = ()) -> StepView:
    """A step for people. `number` is its place where it has no `step_id`."""
    metrics, ours = mapping(step.get("metrics")), gametape_fields(step)
    calls = tuple(_call(call) for call in mappings(step.get("tool_calls")))
    results = tuple(_result(result) for result in mappings(mapping(step.get("observation")).get("results")))
    return StepView(
        number=count(step.get("step_id")) or number,
        turn=turn,
        source=text_of(step.get("source")) or "step",
        text=text_of(step.get("message")),
        reasoning=text_of(step.get("reasoning_content")),
        calls=calls,
        results=results,
        marks=(*more_marks, *_marks(step, ours, results)),
        time=text_of(step.get("timestamp")),
        model=text_of(step.get("model_name")),
        prompt_tokens=count(metrics.get("prompt_tokens")),
        completion_tokens=count(metrics.get("completion_tokens")),
        cached_tokens=count(metrics.get("cached_tokens")),
        cost_usd=amount(metrics.get("cost_usd")),
        copied=step.get("is_copied_context") is True,
        fields=ours,
    )


def text_of(content: Any) -> str:
    """The text of a message or a result: a string, or a list of parts, of which an image is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part, content)))
    return json.dumps(content, ensure_ascii=False)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(values: Any) -> list[dict[str, Any]]:
    """Those entries of a list that are objects."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST else 0


def amount(value: Any) -> float:
    number = tame_numbers(value)
    return float(number) if isinstance(number, int | float) and not isinstance(number, bool) else 0.0


def tame_numbers(value: Any, levels: int = MOST_LEVELS) -> Any:
    """The same value without the numbers that cannot be printed or added up, and without what lies too deep: they
    become None."""
    if isinstance(value, dict | list) and not levels:
        return None
    if isinstance(value, dict):
        return {key: tame_numbers(entry, levels - 1) for key, entry in value.items()}
    if isinstance(value, list):
        return [tame_numbers(entry, levels - 1) for entry in value]
    return value if not isinstance(value, int | float) or -_MOST < value < _MOST else None


def gametape_fields(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """`extra.gametape` of a step or a trajectory."""
    return mapping(mapping(record.get("extra")).get("gametape"))


def flag_mark(flag: Mapping[str, Any]) -> StepMark:
    """The mark of a broken rule."""
    where = ":".join(str(flag[key]) for key in ("file", "line") if flag.get(key) is not None)
    text = " ".join(filter(None, [text_of(flag.get("rule")), where, text_of(flag.get("evidence"))]))
    return StepMark(text_of(flag.get("severity")) or "flag", text, "bad")


def _part(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict):
        source = mapping(part.get("source"))
        named = " ".join(str(source[key]) for key in ("media_type", "path") if isinstance(source.get(key), str))
        return f"[{part.get('type') or 'part'}{': ' if named else ''}{named}]"
    return text_of(part)


def _call(call: Mapping[str, Any]) -> CallView:
    return CallView(text_of(call.get("tool_call_id")), text_of(call.get("function_name")) or "?", call.get("arguments"))


def _result(result: Mapping[str, Any]) -> ResultView:
    refs = [
        next((ref[key] for key in ("trajectory_id", "trajectory_path", "session_id") if ref.get(key)), "")
        for ref in mappings(result.get("subagent_trajectory_ref"))
    ]
    extra = mapping(result.get("extra"))
    failed = bool(extra.get("failed") or extra.get("is_error") or result.get("is_error"))
    text = text_of(result.get("content"))
    return ResultView(text_of(result.get("source_call_id")), text, failed, tuple(map(text_of, filter(None, refs))))


def _marks(step: Mapping[str, Any], ours: Mapping[str, Any], results: tuple[ResultView, ...]) -> list[StepMark]:
    marks = []
    if step.get("is_copied_context") is True:
        marks.append(StepMark("copied", "from an earlier trajectory", "note"))
    if ours.get("after_attempt"):
        marks.append(StepMark("judged", f"attempt {text_of(ours['after_attempt'])} did not reach the goal"))
    if ours.get("rolled_back_to"):
        marks.append(StepMark("back", f"to step {text_of(ours['rolled_back_to'])}"))
    if ours.get("compacted") is True:
        marks.append(StepMark("compacted", "the context begins afresh here", "note"))
    events, told = mappings(ours.get("events")), {result.text for result in results}
    for event in events:
        kind = text_of(event.get("rung") or event.get("kind")) or "event"
        level: Level = "note" if kind in _QUIET_EVENTS else "warning"
        detail = text_of(event.get("detail"))
        marks.append(StepMark(kind.replace("_", " "), "" if detail in told else detail, level))
    warnings = ours.get("warnings")
    marks += [StepMark("warning", text_of(warning)) for warning in (warnings if isinstance(warnings, list) else [])]
    if text_of(ours.get("finish")) in _CUT_OFF and not any(event.get("kind") == "cut_off" for event in events):
        marks.append(StepMark("cut off", "the reply reached the limit of its tokens"))
    return marks
