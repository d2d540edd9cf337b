"""A finished rollout as the coach reads it: the turns that led to its end, with what was called and what came back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.agent.playing import Played
from gametape.agent.recording import answers_of
from gametape.agent.replay import line_of
from gametape.core.assignment import Judged
from gametape.core.step import Step
from gametape.core.verdict import Flag
from gametape.engines.conversation import Answer, Call, ToolDefinition
from gametape.engines.dialect import Dialect


@dataclass(frozen=True)
class Turn:
    """`number` counts the model's turns from 1, `step.step_id` the steps of the record."""

    number: int
    step: Step
    answers: Sequence[Answer]
    notices: Sequence[str]

    @property
    def calls(self) -> Sequence[Call]:
        return [Call(call.function_name, call.arguments, call.tool_call_id) for call in self.step.tool_calls or []]

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        return self.step.ours.events or []

    @property
    def seen(self) -> str:
        """All that came back."""
        return "\n".join([*(answer.content for answer in self.answers), *self.notices])


@dataclass(frozen=True)
class Alarm:
    """What a monitor has noticed at a step of the record."""

    step: int
    monitor: str
    evidence: str


@dataclass(frozen=True)
class Case:
    """All that sources may look at. `flags` are accusations that name a step or a file."""

    turns: Sequence[Turn]
    tools: Sequence[ToolDefinition] = ()
    judged: Judged | None = None
    flags: Sequence[Flag] = ()
    alarms: Sequence[Alarm] = ()
    opening: str = ""

    @property
    def known(self) -> frozenset[str]:
        """Names that belong to the tools and not to this instance."""
        names = [name for tool in self.tools for name in (tool["name"], *_properties(tool))]
        return frozenset(names)

    def at(self, step_id: int) -> Turn | None:
        return next((turn for turn in self.turns if turn.step.step_id == step_id), None)


def case_of(played: Played, flags: Sequence[Flag] = (), alarms: Sequence[Alarm] = ()) -> Case:
    verdict = played.judged.verdict if played.judged else None
    return Case(
        turns_of(played.steps),
        [tool.definition for tool in played.assignment.tools()],
        played.judged,
        [*(verdict.integrity if verdict else ()), *flags],
        alarms,
        played.assignment.opening,
    )


def turns_of(steps: Sequence[Step]) -> list[Turn]:
    """Those that lead to the last step, in their order; turns that were undone are not among them."""
    own = [step for step in line_of(steps) if step.source == "agent" and not step.ours.summary]
    return [Turn(number, step, *answers_of(step)) for number, step in enumerate(own, start=1)]


def action_span(turn: Turn, dialect: Dialect) -> tuple[int, int] | None:
    """The completion tokens that make up the turn's calls, without what was said before them; all of them where there
    is no call, and None where no ids were recorded."""
    tokens = turn.step.tokens()
    if tokens is None or not tokens.completion_ids:
        return None
    ids = tokens.completion_ids
    calls = dialect.parse(ids).calls
    first, last = 0, len(ids) - 1
    while calls and first < last:
        middle = (first + last + 1) // 2
        if dialect.parse(ids[middle:]).calls == calls:
            first = middle
        else:
            last = middle - 1
    return first, len(ids)


def reads_as_recorded(turns: Sequence[Turn], dialect: Dialect) -> bool:
    """Whether the recorded ids, in this dialect, say what the record says: otherwise they are another model's."""
    return all(
        [(call.name, call.arguments) for call in dialect.parse(tokens.completion_ids).calls]
        == [(call.name, call.arguments) for call in turn.calls]
        for turn in turns
        if (tokens := turn.step.tokens())
    )


def _properties(tool: ToolDefinition) -> Iterator[str]:
    for name, told in (tool.get("parameters") or {}).get("properties", {}).items():
        yield name
        yield from (value for value in told.get("enum", ()) if isinstance(value, str))
