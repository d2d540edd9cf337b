"""One step as the monitors see it: its text, actions and cost, whatever log it comes from."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.watch.lexicon import WordTraits
from gametape.watch.text_features import Ngram, fingerprint, normalised_words, word_ngrams

_MOST_CHARACTERS = 20_000
"""A text is cut here, so that the cost of watching a step is bounded."""
_TOO_LARGE = 1e15
_CALL_NAMES = ("name", "function_name", "tool", "tool_name", "toolName")
_CALL_ARGUMENTS = ("arguments", "input", "args", "parameters")


@dataclass(frozen=True)
class ObservedAction:
    """One tool call. Two are the same when tool and arguments are."""

    tool: str
    arguments: str

    @classmethod
    def of(cls, tool: str, arguments: Any) -> "ObservedAction":
        return cls(tool, plain_text(arguments)[:_MOST_CHARACTERS])


@dataclass(frozen=True)
class ObservedStep:
    """A step: its text, its tool calls and their result. `tokens` and `cost` are None where they were not counted."""

    text: str
    actions: tuple[ObservedAction, ...] = ()
    result: str | None = None
    model: str | None = None
    time: float | None = None
    """Seconds since the epoch."""
    tokens: int | None = None
    cost: float | None = None
    session: str | None = None
    """The conversation it is part of, where a stream has several: an action in another one is no repetition."""
    paragraph: int | None = None
    """The paragraph of the text file that this line is in: a line of a paragraph is less than a step."""

    @cached_property
    def words(self) -> list[str]:
        return normalised_words(self.text)

    @cached_property
    def grams(self) -> set[Ngram]:
        return word_ngrams(self.words)

    @cached_property
    def fingerprint(self) -> int:
        return fingerprint(self.words)

    @cached_property
    def traits(self) -> WordTraits:
        return WordTraits(self.words)

    @cached_property
    def language(self) -> str | None:
        """The language of the text, where there is telling."""
        return self.traits.language(self.text)

    @property
    def silent(self) -> bool:
        return not self.text.strip()


def observed_step(step: Step, model: str | None = None, session: str | None = None) -> ObservedStep | None:
    """An agent's own step; None for other sources, and for turns that were copied from another trajectory."""
    if step.source != "agent" or step.is_copied_context:
        return None
    metrics = step.metrics
    results = step.observation.results if step.observation else []
    results = [result for result in results if result.source_call_id is not None] or results  # without our notices
    counted = [metrics.prompt_tokens, metrics.completion_tokens] if metrics else []
    return ObservedStep(
        text=plain_text(step.message)[:_MOST_CHARACTERS],
        actions=tuple(ObservedAction.of(call.function_name, call.arguments) for call in step.tool_calls or []),
        result="\n".join(plain_text(result.content) for result in results)[:_MOST_CHARACTERS] if results else None,
        model=step.model_name or model,
        time=parse_seconds(step.timestamp),
        tokens=sum(count or 0 for count in counted) if any(count is not None for count in counted) else None,
        cost=metrics.cost_usd if metrics else None,
        session=session,
    )


def observed_steps(trajectory: Trajectory) -> Iterator[tuple[int, ObservedStep]]:
    """A trajectory's own steps, each with its number in it."""
    for step in trajectory.steps:
        observed = observed_step(step, trajectory.agent.model_name, trajectory.session_id or trajectory.trajectory_id)
        if observed is not None:
            yield step.step_id, observed


def observed_step_from_record(record: dict[str, Any]) -> ObservedStep:
    """A step in JSON lines of our own: `text`, and where they are given `time`, `tool_calls`, `result`, `model`,
    `session`, `tokens`, `cost_usd`. `watch/log_formats.py` converts third-party records to this form.
    """
    result = record.get("result")
    model = record.get("model")
    session = record.get("session")
    tokens = parse_number(record.get("tokens"))
    return ObservedStep(
        text=plain_text(record.get("text"))[:_MOST_CHARACTERS],
        actions=tuple(_actions(record.get("tool_calls"))),
        result=None if result is None else plain_text(result)[:_MOST_CHARACTERS],
        model=model if isinstance(model, str) else None,
        time=parse_seconds(record.get("time")),
        tokens=None if tokens is None else int(tokens),
        cost=parse_number(record.get("cost_usd")),
        session=None if session is None else str(session),
    )


def _actions(calls: Any) -> Iterator[ObservedAction]:
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, str):
            yield ObservedAction(call, "")
        elif isinstance(call, dict):
            function = call.get("function")
            inner = function if isinstance(function, dict) else call
            name = next((inner[key] for key in _CALL_NAMES if key in inner), "?")
            yield ObservedAction.of(str(name), next((inner[key] for key in _CALL_ARGUMENTS if key in inner), {}))


def plain_text(content: Any) -> str:
    """Text, the text parts of a list of parts, or the JSON of anything else."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, str) or _part_text(part) is not None for part in content):
        return "".join(part if isinstance(part, str) else str(_part_text(part)) for part in content)
    try:
        return json.dumps(content, sort_keys=True, default=str)
    except RecursionError:
        return "(nested too deeply)"


def _part_text(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) else getattr(part, "text", None)
    return text if isinstance(text, str) else None


def parse_seconds(time: Any) -> float | None:
    """Seconds since the epoch of an ISO 8601 time or a number; None for anything else."""
    if isinstance(time, int | float):
        return parse_number(time)
    try:
        return datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def parse_number(value: Any) -> float | None:
    """A number of a reasonable size as a float; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _TOO_LARGE else None
