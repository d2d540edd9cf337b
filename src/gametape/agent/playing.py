"""One attempt at one assignment through the loop, from its opening to what it is worth. Nothing is written to disk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from gametape.agent.constraints import Constraints
from gametape.agent.limits import Limits, Over, Spent
from gametape.agent.recording import InMemory
from gametape.agent.rollout import Rollout, Setting, Watcher
from gametape.agent.work import Work
from gametape.core.assignment import Assignment, Judged
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.core.step import Step
from gametape.engines.conversation import Model


@runtime_checkable
class InHand(Protocol):
    """An assignment in a workspace: its tools share what the agent has in hand with the rollout, and some things there
    may be forbidden."""

    @property
    def constraints(self) -> Constraints: ...

    def tools_over(self, work: Work) -> Sequence[Tool]: ...

    def changed(self, before: str, after: str) -> Iterable[str]:
        """The paths that differ between two snapshots."""
        ...


@dataclass(frozen=True)
class Played:
    """A finished attempt. `judged` is None where the machinery failed, so that nothing can be said about the policy."""

    assignment: Assignment
    steps: Sequence[Step]
    over: Over
    judged: Judged | None
    spent: Spent

    @property
    def cut_short(self) -> bool:
        """It ran into a limit instead of ending itself."""
        return self.over.outcome == "limit"


def setting_for(
    assignment: Assignment,
    model: Model,
    sampling: Sampling,
    limits: Limits,
    name: str = "",
    watch: Watcher = lambda _step: None,
) -> Setting:
    """The fixed part of a rollout at this assignment; `limits` hold besides the assignment's own number of turns."""
    setting = Setting(
        toolmaker=lambda _work: assignment.tools(),
        converse=lambda: model.converse(sampling, name),
        window=model.window,
        limits=limits.model_copy(update={"turns": min(limits.turns, assignment.turns)}),
        watch=watch,
    )
    if not isinstance(assignment, InHand):
        return setting
    return replace(
        setting,
        toolmaker=assignment.tools_over,
        constraints=assignment.constraints,
        changed=assignment.changed,
    )


async def play(assignment: Assignment, setting: Setting) -> Played:
    """Begin, run until it is over, judge."""
    environment = await assignment.open()
    try:
        rollout = await Rollout.begin(setting, environment, InMemory(), assignment.system, assignment.opening)
        return await finish(assignment, rollout)
    finally:
        await environment.close()


async def finish(assignment: Assignment, rollout: Rollout) -> Played:
    """Run a rollout that has begun, or been forked, to its end, and judge it."""
    over = await rollout.run()
    judged = None if over.outcome == "error" else await assignment.judge(rollout.environment)
    return Played(assignment, rollout.recorder.steps, over, judged, rollout.spent)
