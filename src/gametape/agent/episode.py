"""One attempt at one assignment through the loop, from its opening to what it is worth. Nothing is written to disk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from gametape.agent.agent_state import AgentState
from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutEnd, RolloutLimits, RolloutUsage
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.rollout import Rollout, RolloutConfig, StepCallback
from gametape.core.environment import EpisodeScore
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment, Tool
from gametape.core.step import Step
from gametape.engines.conversation import Model


@runtime_checkable
class ConstrainedEnvironment(Protocol):
    """An assignment in a workspace: its tools share what the agent has in hand with the rollout, and some things there
    may be forbidden."""

    @property
    def constraints(self) -> Constraints: ...

    def tools_for_state(self, state: AgentState) -> Sequence[Tool]: ...

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        """The paths that differ between two snapshots."""
        ...


@dataclass(frozen=True)
class Episode:
    """A finished attempt. `judged` is None where the machinery failed, so that nothing can be said about the policy."""

    environment: Environment
    steps: Sequence[Step]
    end: RolloutEnd
    score: EpisodeScore | None
    usage: RolloutUsage

    @property
    def cut_short(self) -> bool:
        """It ran into a limit instead of ending itself."""
        return self.end.outcome == "limit"


def rollout_config_for(
    environment: Environment,
    model: Model,
    sampling: Sampling,
    limits: RolloutLimits,
    name: str = "",
    on_step: StepCallback = lambda _step: None,
) -> RolloutConfig:
    """The fixed part of a rollout at this assignment; `limits` hold besides the assignment's own number of turns."""
    setting = RolloutConfig(
        make_tools=lambda _work: environment.tools(),
        start_conversation=lambda: model.start_conversation(sampling, name),
        window=model.window,
        limits=limits.model_copy(update={"turns": min(limits.turns, environment.max_turns)}),
        on_step=on_step,
    )
    if not isinstance(environment, ConstrainedEnvironment):
        return setting
    return replace(
        setting,
        make_tools=environment.tools_for_state,
        constraints=environment.constraints,
        changed_paths=environment.changed_paths,
    )


async def run_episode(environment: Environment, config: RolloutConfig) -> Episode:
    """Begin, run until it is over, judge."""
    workspace = await environment.reset()
    try:
        rollout = await Rollout.begin(
            config, workspace, MemoryRecorder(), environment.system_prompt, environment.user_prompt
        )
        return await finish_episode(environment, rollout)
    finally:
        await workspace.close()


async def finish_episode(environment: Environment, rollout: Rollout) -> Episode:
    """Run a rollout that has begun, or been forked, to its end, and judge it."""
    over = await rollout.run()
    judged = None if over.outcome == "error" else await environment.score(rollout.workspace)
    return Episode(environment, rollout.recorder.steps, over, judged, rollout.usage)
