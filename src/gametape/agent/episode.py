"""Run one episode: reset an environment, let the agent work until it ends, score the result. Nothing is kept on disk.

Training and evaluation both run their episodes here, so a policy is scored on exactly what it was trained on.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
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
    past_deadline: bool = False
    """It was cut at its deadline; the score is that of its last finished turn."""
    overlong: bool = False
    """It ran into a limit that says nothing about what it did: of turns, tokens, time or cost. Without one usable call
    there was nothing to cut short."""


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


class EpisodeStages:
    """Contexts around the parts of an episode, for whoever wants to know when they begin and end."""

    def opening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def playing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def scoring(self) -> AbstractContextManager[None]:
        return nullcontext()


_NO_STAGES = EpisodeStages()


async def run_episode(
    environment: Environment,
    config: RolloutConfig,
    infra_error: type[GametapeError] | None = None,
    deadline_seconds: float | None = None,
    stages: EpisodeStages = _NO_STAGES,
) -> Episode:
    """Reset, run to the end, score. An error of the type `infra_error` gives an episode without a score; others are
    raised. What plays for longer than `deadline_seconds` is cut, in the middle of a turn if need be."""
    try:
        with stages.opening():
            workspace = await environment.reset()
        try:
            prompts = environment.system_prompt, environment.user_prompt
            rollout = await Rollout.begin(config, workspace, MemoryRecorder(), *prompts)
            return await finish_episode(environment, rollout, deadline_seconds, stages)
        finally:
            await workspace.close()
    except GametapeError as error:
        if infra_error is None or not isinstance(error, infra_error):
            raise
        return Episode(environment, (), RolloutEnd.from_error(error), None, RolloutUsage())


async def finish_episode(
    environment: Environment,
    rollout: Rollout,
    deadline_seconds: float | None = None,
    stages: EpisodeStages = _NO_STAGES,
) -> Episode:
    """Run a rollout that has begun, or that was forked, to its end, and score it."""
    try:
        with stages.playing():
            async with asyncio.timeout(deadline_seconds) as deadline:
                end = await rollout.run()
    except TimeoutError:
        if not deadline.expired():
            raise
        end = RolloutEnd("limit", f"cut at its deadline of {deadline_seconds:g} seconds")
    score = None
    if end.outcome != "error":
        with stages.scoring():
            score = await environment.score(rollout.workspace)
    past_deadline, usage = deadline.expired(), rollout.usage
    overlong = past_deadline or (end.overlong and usage.useless_turns < usage.turns)
    return Episode(environment, rollout.recorder.steps, end, score, usage, past_deadline, overlong)
