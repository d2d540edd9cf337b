"""Memory pairs as rollouts: two episodes, of which the second reads a note that the first wrote, are one attempt.

The turn that wrote the note gets the reader's reward: what the note was worth shows when it is used. The writer's other
turns are worth 1 if all of them were right. The reader's turns get the reader's reward too, and are compared with those
of readers of the same note: nobody is blamed for what another has written.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutUsage
from gametape.core.environment import EpisodeScore, StepCredit
from gametape.core.protocols import Environment
from gametape.core.step import Step
from gametape.tasks.worlds.memory import MemoryPair, joint_score
from gametape.tasks.worlds.plan import KEEP_TOOL_NAME

PlayEpisode = Callable[[Environment], Awaitable[Episode]]


async def play_memory_pair(pair: MemoryPair, play: PlayEpisode) -> Episode:
    """Both episodes as one: the steps of the reader follow those of the writer."""
    first = await play(pair.writer)
    if first.score is None:
        return first
    second = await play(pair.reader(first.score.note))
    steps = [*first.steps, *_renumbered(second.steps, len(first.steps))]
    score = second.score and _pair_score(first, second.score, steps)
    return replace(
        first,
        steps=steps,
        end=first.end if first.overlong else second.end,
        score=score,
        usage=_added(first.usage, second.usage),
        past_deadline=first.past_deadline or second.past_deadline,
        overlong=first.overlong or second.overlong,
    )


def _pair_score(first: Episode, reader: EpisodeScore, steps: Sequence[Step]) -> EpisodeScore:
    writer = first.score
    assert writer is not None
    own = [step for step in first.steps if step.source == "agent"]
    notes = [step.step_id for step in own if _wrote_note(step)]
    others = [step.step_id for step in own if step.step_id not in notes]
    read = [step.step_id for step in steps[len(first.steps) :] if step.source == "agent"]
    marks = (replace(mark, turn=mark.turn + first.usage.turns) for mark in reader.marks)
    note_turns = [turn for turn, step in enumerate(own, start=1) if _wrote_note(step)]
    right = all(mark.correct for mark in writer.marks if mark.turn not in note_turns)
    credits = (
        StepCredit(tuple(others), float(right)),
        StepCredit(tuple(notes), reader.reward),
        StepCredit(tuple(read), reader.reward, given=" ".join(writer.note)),
    )
    return replace(joint_score(writer, [reader]), marks=(*writer.marks, *marks), credits=credits)


def _wrote_note(step: Step) -> bool:
    return any(call.function_name == KEEP_TOOL_NAME for call in step.tool_calls or ())


def _renumbered(steps: Sequence[Step], before: int) -> list[Step]:
    return [step.model_copy(update={"step_id": step.step_id + before}) for step in steps]


def _added(one: RolloutUsage, other: RolloutUsage) -> RolloutUsage:
    return RolloutUsage(
        turns=one.turns + other.turns,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        tool_seconds=one.tool_seconds + other.tool_seconds,
        calls=one.calls + other.calls,
    )
