"""Run one episode: reset an environment, let the agent work until it ends, score the result. Nothing is kept on disk.

Training and evaluation both run their episodes here, so a policy is scored on exactly what it was trained on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from gametape.agent.agent_state import AgentState
from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutEnd, RolloutLimits, RolloutUsage
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.rollout import Rollout, RolloutConfig, StepCallback
from gametape.core.environment import EpisodeScore
from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment, Tool
from gametape.core.step import Step
from gametape.engines.conversation import Model


@runtime_checkable
class ConstrainedEnvironment(Protocol):
    """An environment with a file tree: its tools share the agent's state with the rollout, and constraints hold."""

    @property
    def constraints(self) -> Constraints: ...

    @property
    def tool_seconds(self) -> float:
        """What one tool call may take, where the limits do not allow more."""
        ...

    def tools_for_state(self, state: AgentState) -> Sequence[Tool]: ...

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        """The paths that differ between two snapshots."""
        ...


@dataclass(frozen=True)
class Episode:
    """A finished episode. `score` is None where the infrastructure failed, so nothing is known about the policy."""

    environment: Environment
    steps: Sequence[Step]
    end: RolloutEnd
    score: EpisodeScore | None
    usage: RolloutUsage

    @property
    def cut_short(self) -> bool:
        """Whether it ran into a limit instead of ending itself."""
        return self.end.outcome == "limit"


def rollout_config_for(
    environment: Environment,
    model: Model,
    sampling: Sampling,
    limits: RolloutLimits,
    name: str = "",
    on_step: StepCallback = lambda _step: None,
) -> RolloutConfig:
    """The config of a rollout in this environment. The environment's own number of turns holds besides `limits`."""
    config = RolloutConfig(
        model=model,
        make_tools=lambda _state: environment.tools(),
        name=name,
        sampling=sampling,
        limits=limits.model_copy(update={"turns": min(limits.turns, environment.max_turns)}),
        on_step=on_step,
    )
    if not isinstance(environment, ConstrainedEnvironment):
        return config
    return replace(
        config,
        make_tools=environment.tools_for_state,
        limits=config.limits.model_copy(
            update={"tool_seconds": max(config.limits.tool_seconds, environment.tool_seconds)}
        ),
        constraints=environment.constraints,
        changed_paths=environment.changed_paths,
    )


async def run_episode(
    environment: Environment, config: RolloutConfig, infra_error: type[GametapeError] | None = None
) -> Episode:
    """Reset, run to the end, score. An error of the type `infra_error` gives an episode without a score; others are
    raised."""
    try:
        workspace = await environment.reset()
        try:
            prompts = environment.system_prompt, environment.user_prompt
            return await finish_episode(environment, await Rollout.begin(config, workspace, MemoryRecorder(), *prompts))
        finally:
            await workspace.close()
    except GametapeError as error:
        if infra_error is None or not isinstance(error, infra_error):
            raise
        return Episode(environment, (), RolloutEnd.from_error(error), None, RolloutUsage())


async def finish_episode(environment: Environment, rollout: Rollout) -> Episode:
    """Run a rollout that has begun, or that was forked, to its end, and score it."""
    end = await rollout.run()
    score = None if end.outcome == "error" else await environment.score(rollout.workspace)
    return Episode(environment, rollout.recorder.steps, end, score, rollout.usage)
