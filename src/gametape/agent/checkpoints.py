"""What a record says of its file trees, and how a rollout is put back on one of them."""

import shlex
from collections.abc import Sequence

from gametape.agent.replay import line_of
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.core.step import Step
from gametape.sandbox.policy import WORKSPACE

_SECONDS_TO_ENTER = 10.0


def last_checkpoint(steps: Sequence[Step]) -> str:
    """The file tree after the last finished turn of a record."""
    return saved_at(line_of(steps))[0]


def saved_at(line: Sequence[Step], step_id: int | None = None) -> tuple[str, Work]:
    """The file tree and the work in hand at the end of a line of steps."""
    if step_id is not None and (not line or line[-1].step_id != step_id):
        raise BadInput(f"there is no step {step_id} to go back to")
    for step in reversed(line):
        if step.ours.checkpoint:
            return step.ours.checkpoint, Work.from_data(step.ours.work) if step.ours.work else Work()
    raise BadInput("the record has no checkpoint to go on from")


async def enter(environment: Environment, work: Work) -> None:
    """The shell of a new sandbox is in the workspace; what was said goes by where the shell was."""
    if work.directory != WORKSPACE:
        await environment.shell(f"builtin cd -- {shlex.quote(work.directory)}", _SECONDS_TO_ENTER)


def copied(step: Step, number: int) -> Step:
    """A step of another rollout: read, and not trained on again."""
    document = step.model_dump() | {"step_id": number, "is_copied_context": True}
    ours = (document.get("extra") or {}).get("gametape") or {}
    if ours.get("loss_mask"):
        ours["loss_mask"] = [0] * len(ours["loss_mask"])
    return Step.model_validate(document)
