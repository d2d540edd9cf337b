"""Rebuild a rollout from its record: its active steps, its conversation, its last checkpoint and agent state."""

import shlex
from collections.abc import Sequence
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.model_use import recorded_escalations
from gametape.agent.recorded_steps import recorded_answers, recorded_reply, step_text
from gametape.agent.recorder import StepRecorder
from gametape.core.errors import BadInput
from gametape.core.protocols import Workspace
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, ToolDefinition
from gametape.engines.router import escalate
from gametape.record.journal_steps import JournalSteps
from gametape.sandbox.policy import WORKSPACE

_FIRST_TURNS, _LAST_OBSERVED = 200, 256


def active_steps(steps: Sequence[Step], last: int | None = None) -> list[Step]:
    """The steps that lead to the step `last`, or to the last recorded one, without those that a rewind undid. Raises
    `BadInput` for a rewind to a step that was not there."""
    before: dict[int, int] = {}
    here = 0
    for step in steps[: last if last is not None else len(steps)]:
        back = step.gametape_extra.rolled_back_to
        if back is None:
            before[step.step_id] = here
            here = step.step_id
        elif back in before:
            here = back
        else:
            raise BadInput(f"step {step.step_id} goes back to step {back}, which is none that came before it")
    active = []
    while here:
        active.append(steps[here - 1])
        here = before[here]
    return active[::-1]


def replay_conversation(conversation: Conversation, steps: Sequence[Step], tools: Sequence[ToolDefinition]) -> None:
    """Put recorded steps into a conversation, sampled turns token by token as they were sampled."""
    system = ""
    begun = False
    for step in steps:
        if step.gametape_extra.summary:
            continue
        if recorded_escalations([step]):
            escalate(conversation)
        if step.source == "system":
            system = system or step_text(step)
        elif step.source == "user":
            if begun and not step.gametape_extra.compacted:
                conversation.add_user_message(step_text(step))
            else:
                conversation.begin(system, tools, step_text(step))
                begun = True
        else:
            conversation.replay(recorded_reply(step))
            answers, notices = recorded_answers(step)
            if answers:
                conversation.add_tool_responses(answers)
            for notice in notices:
                conversation.add_user_message(notice)


def active_record(recorder: StepRecorder) -> Sequence[Step]:
    """The active steps of all that is recorded; where nothing was rewound, they are not looked at for this."""
    return active_steps(recorder.steps) if recorder.digest.rewound else recorder.steps


def observed_steps_of(recorder: StepRecorder) -> Sequence[Step]:
    """The active steps that a new breaker is shown, perhaps without token ids: all of them, or, of a
    long record, the first ones, from which it learns what is usual, and the latest ones."""
    steps = active_record(recorder)
    read = steps.brief if isinstance(steps, JournalSteps) else steps.__getitem__
    latest = max(0, len(steps) - _LAST_OBSERVED)
    first: list[Step] = []
    turns = 0
    while turns < _FIRST_TURNS and len(first) < latest:
        first.append(read(len(first)))
        turns += first[-1].source == "agent"
    return [*first, *(read(number) for number in range(latest, len(steps)))]


def replay_record(conversation: Conversation, recorder: StepRecorder, tools: Sequence[ToolDefinition]) -> None:
    """Continue the conversation of a record: its current context is replayed, and the turns before it are counted."""
    steps, digest = active_record(recorder), recorder.digest
    if digest.rewound or not digest.context:
        replay_conversation(conversation, steps, tools)
        return
    if digest.context_escalated:
        escalate(conversation)
    conversation.skip_turns(digest.context_turns)
    prompts = [step for step in steps[:1] if step.source == "system"]
    replay_conversation(conversation, [*prompts, *steps[digest.context :]], tools)


_SECONDS_TO_ENTER = 10.0


def last_checkpoint(steps: Sequence[Step]) -> str:
    """The checkpoint after the last finished turn of a record."""
    return checkpoint_at(active_steps(steps))[0]


def checkpoint_at(steps: Sequence[Step], step_id: int | None = None) -> tuple[str, AgentState]:
    """The checkpoint and the agent state after the last of these active steps."""
    if step_id is not None and (not steps or steps[-1].step_id != step_id):
        raise BadInput(f"there is no step {step_id} to go back to")
    for step in reversed(steps):
        if step.gametape_extra.checkpoint:
            work = step.gametape_extra.work
            return step.gametape_extra.checkpoint, AgentState.from_data(work) if work else AgentState()
    raise BadInput("the record has no checkpoint to go on from")


async def restore_directory(workspace: Workspace, state: AgentState) -> None:
    """Send the shell of a new sandbox to the directory that the recorded shell was in."""
    if state.directory != WORKSPACE:
        await workspace.shell(f"builtin cd -- {shlex.quote(state.directory)}", _SECONDS_TO_ENTER)


def as_copied_context(step: Step, number: int) -> Step:
    """A step copied from another rollout: part of the context, but not trained on again."""
    update: dict[str, Any] = {"step_id": number, "is_copied_context": True}
    if step.extra and (mask := step.gametape_extra.loss_mask):
        unmasked = step.gametape_extra.model_copy(update={"loss_mask": [0] * len(mask)})
        update["extra"] = step.extra.model_copy(update={"gametape": unmasked})
    return step.model_copy(update=update)
