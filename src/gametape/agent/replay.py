"""From the record back to a conversation: how a rollout is continued, gone back in, or forked."""

from collections.abc import Sequence

from gametape.agent.recording import answers_of, reply_of, text_of
from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, ToolDefinition


def line_of(steps: Sequence[Step], last: int | None = None) -> list[Step]:
    """The steps that lead to a step (the last one if None is named), without those that were gone back over. Raises
    `BadInput` for a record that goes back to what was not there."""
    before: dict[int, int] = {}
    here = 0
    for step in steps[: last if last is not None else len(steps)]:
        back = step.ours.rolled_back_to
        if back is None:
            before[step.step_id] = here
            here = step.step_id
        elif back in before:
            here = back
        else:
            raise BadInput(f"step {step.step_id} goes back to step {back}, which is none that came before it")
    line = []
    while here:
        line.append(steps[here - 1])
        here = before[here]
    return line[::-1]


def replay(conversation: Conversation, line: Sequence[Step], tools: Sequence[ToolDefinition]) -> None:
    """Say everything again, sampled turns token by token as they were sampled."""
    system = ""
    begun = False
    for step in line:
        if step.ours.summary:
            continue
        if step.source == "system":
            system = system or text_of(step)
        elif step.source == "user":
            if begun and not step.ours.compacted:
                conversation.tell(text_of(step))
            else:
                conversation.begin(system, tools, text_of(step))
                begun = True
        else:
            conversation.recall(reply_of(step))
            answers, notices = answers_of(step)
            if answers:
                conversation.answer(answers)
            for notice in notices:
                conversation.tell(notice)
