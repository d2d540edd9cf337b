"""What the coach reads of an episode, and hint candidates: the turn that went wrong, the evidence, the hint's text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.recorded_steps import recorded_answers
from gametape.agent.replay import active_steps
from gametape.core.environment import EpisodeScore
from gametape.core.hint import HintAuthor, HintSource
from gametape.core.step import Step
from gametape.core.verdict import Flag
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.conversation import Call, ToolDefinition, ToolResponse


@dataclass(frozen=True)
class HintCandidate:
    """A hint for one turn, before any gate. `turn` counts the model's turns from 1, `step` and `noticed_step` the steps
    of the record.

    Candidates of one `type` break the same rule, in any instance: a type holds no name or value of the instance.
    """

    step: int
    turn: int
    source: HintSource
    type: str
    text: str
    evidence: str
    noticed_step: int
    span: tuple[int, int] | None = None
    """The completion tokens of the step that make up the action; None where no ids were recorded."""
    author: HintAuthor = "message"


@dataclass(frozen=True)
class RecordedTurn:
    """A turn of the model with the answers to its calls. `number` counts the model's turns from 1."""

    number: int
    step: Step
    answers: Sequence[ToolResponse]
    notices: Sequence[str]

    @property
    def calls(self) -> Sequence[Call]:
        return [Call(call.function_name, call.arguments, call.tool_call_id) for call in self.step.tool_calls or []]

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        return self.step.gametape_extra.events or []

    @property
    def observed_text(self) -> str:
        """The text of all answers and notices."""
        return "\n".join([*(answer.content for answer in self.answers), *self.notices])


@dataclass(frozen=True)
class AlarmEvidence:
    """The alarm of a monitor at a step of the record."""

    step: int
    monitor: str
    evidence: str


@dataclass(frozen=True)
class EpisodeEvidence:
    """What the sources of candidates read. `flags` are integrity flags that name a step or a file."""

    turns: Sequence[RecordedTurn]
    tools: Sequence[ToolDefinition] = ()
    score: EpisodeScore | None = None
    flags: Sequence[Flag] = ()
    alarms: Sequence[AlarmEvidence] = ()
    opening: str = ""

    @property
    def tool_words(self) -> frozenset[str]:
        """Names that belong to the tools and not to this instance."""
        names = [name for tool in self.tools for name in (tool["name"], *_properties(tool))]
        return frozenset(names)

    def turn_at_step(self, step_id: int) -> RecordedTurn | None:
        return next((turn for turn in self.turns if turn.step.step_id == step_id), None)


def collect_evidence(
    episode: Episode, flags: Sequence[Flag] = (), alarms: Sequence[AlarmEvidence] = ()
) -> EpisodeEvidence:
    verdict = episode.score.verdict if episode.score else None
    return EpisodeEvidence(
        agent_turns(episode.steps),
        [tool.definition for tool in episode.environment.tools()],
        episode.score,
        [*(verdict.integrity if verdict else ()), *flags],
        alarms,
        episode.environment.user_prompt,
    )


def agent_turns(steps: Sequence[Step]) -> list[RecordedTurn]:
    """The turns that lead to the last step, in their order, without turns that were undone."""
    own = [step for step in active_steps(steps) if step.source == "agent" and not step.gametape_extra.summary]
    return [RecordedTurn(number, step, *recorded_answers(step)) for number, step in enumerate(own, start=1)]


def action_span(turn: RecordedTurn, chat_format: ChatFormat) -> tuple[int, int] | None:
    """The range of completion tokens that make up the turn's calls, without the text before them; all of them where
    there is no call, and None where no ids were recorded."""
    tokens = turn.step.tokens()
    if tokens is None or not tokens.completion_ids:
        return None
    ids = tokens.completion_ids
    calls = chat_format.parse(ids).calls
    first, last = 0, len(ids) - 1
    while calls and first < last:
        middle = (first + last + 1) // 2
        if chat_format.parse(ids[middle:]).calls == calls:
            first = middle
        else:
            last = middle - 1
    return first, len(ids)


def ids_match_record(turns: Sequence[RecordedTurn], chat_format: ChatFormat) -> bool:
    """Whether the recorded ids parse into the recorded calls; otherwise they are another model's."""
    return all(
        [(call.name, call.arguments) for call in chat_format.parse(tokens.completion_ids).calls]
        == [(call.name, call.arguments) for call in turn.calls]
        for turn in turns
        if (tokens := turn.step.tokens())
    )


def _properties(tool: ToolDefinition) -> Iterator[str]:
    for name, schema in (tool.get("parameters") or {}).get("properties", {}).items():
        yield name
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))
