"""Forks of a finished rollout: continue from one of its turns, with or without hints.

A rollout's workspace is closed when it ends. So its calls are made again in a new workspace, without asking the model,
with a snapshot at every turn: any number of forks can start from each.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from gametape.agent.agent_state import AgentState
from gametape.agent.episode import Episode, finish_episode, rollout_config_for
from gametape.agent.limits import RolloutLimits, RolloutUsage
from gametape.agent.recorded_steps import recorded_answers, recorded_reply
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.replay import active_steps, as_copied_context
from gametape.agent.rollout import Rollout
from gametape.agent.tool_router import ToolRouter
from gametape.coach.fork_pair import ForkPair
from gametape.coach.hinted_engine import with_hints
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment, Workspace
from gametape.core.step import Step
from gametape.engines.conversation import ToolResponse
from gametape.engines.token_conversation import TokenModel

_MAX_OPEN = 16
"""Workspaces that are open at a time."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
"""Times and addresses differ from run to run."""


@dataclass
class ForkCost:
    """How many forks were run, and the tokens that they used."""

    forks: int = 0
    tokens: int = 0


@dataclass
class EpisodeForker:
    """A finished rollout, to be forked at any of its turns. Forks are counted in `cost`."""

    environment: Environment
    model: TokenModel
    steps: Sequence[Step]
    """The active steps of the rollout, each with its checkpoint in `workspace`."""
    workspace: Workspace
    limits: RolloutLimits
    temperature: float = 1.0
    name: str = ""
    cost: ForkCost = field(default_factory=ForkCost)
    pairs: list[ForkPair] = field(default_factory=list)
    """What trials of hints have to show."""

    def __post_init__(self) -> None:
        self._open_workspaces = asyncio.Semaphore(_MAX_OPEN)
        self._numbers = count()

    async def branch(self, turn: int, hints: Mapping[int, str], seed: int) -> Episode:
        """An episode that repeats the rollout up to a turn and is sampled from there on; hints are by turn."""
        steps = [as_copied_context(step, number) for number, step in enumerate(self._before(turn), start=1)]
        sampling = Sampling(temperature=self.temperature, seed=seed)
        name = f"{self.name}/fork-{next(self._numbers):06}"
        config = rollout_config_for(self.environment, with_hints(self.model, hints), sampling, self.limits, name)
        checkpoint = next(step.gametape_extra.checkpoint for step in reversed(steps) if step.gametape_extra.checkpoint)
        async with self._open_workspaces:
            workspace = await self.workspace.fork(checkpoint)
            try:
                rollout = await Rollout.resume(config, workspace, MemoryRecorder(steps))
                with self.model.engine.participant():
                    episode = await finish_episode(self.environment, rollout)
            finally:
                await workspace.close()
        self.cost.forks += 1
        self.cost.tokens += episode.usage.tokens
        return episode

    async def branches(self, turn: int, hints: Mapping[int, str], seeds: Sequence[int]) -> list[Episode]:
        """Run concurrently. Branches of the same seed are the same up to the first hint in which they differ."""
        return await asyncio.gather(*(self.branch(turn, hints, seed) for seed in seeds))

    def _before(self, turn: int) -> Sequence[Step]:
        own = [
            index for index, step in enumerate(self.steps) if step.source == "agent" and not step.gametape_extra.summary
        ]
        if not 1 <= turn <= len(own):
            raise BadInput(f"there is no turn {turn} to fork at; there are {len(own)}")
        return self.steps[: own[turn - 1]]


@asynccontextmanager
async def replay_for_forks(
    episode: Episode, model: TokenModel, limits: RolloutLimits, temperature: float = 1.0, name: str = ""
) -> AsyncIterator[EpisodeForker]:
    """Raises `BadInput` where the same calls have other results now: forks of such a rollout would prove nothing."""
    workspace = await episode.environment.reset()
    try:
        steps = await _replay(episode, workspace, model, limits)
        yield EpisodeForker(episode.environment, model, steps, workspace, limits, temperature, name)
    finally:
        await workspace.close()


async def _replay(episode: Episode, workspace: Workspace, model: TokenModel, limits: RolloutLimits) -> list[Step]:
    config = rollout_config_for(episode.environment, model, Sampling(), limits)
    state, usage = AgentState(), RolloutUsage()
    state.max_read_characters = config.output_room.read
    router = ToolRouter(config.make_tools(state), config.limits, config.constraints, config.output_room)
    steps: list[Step] = []
    recorded_checkpoint = snapshot = ""
    for step in active_steps(episode.steps):
        checkpoint = step.gametape_extra.checkpoint
        if checkpoint is None:
            steps.append(step)
            continue
        if step.source == "agent" and not step.gametape_extra.summary:
            usage.turns += 1
            state.turn = usage.turns
            routed = await router.route(recorded_reply(step), workspace, usage)
            _compare(step, routed.answers)
        if checkpoint != recorded_checkpoint:
            recorded_checkpoint, snapshot = checkpoint, await workspace.snapshot()
        elif step.source == "agent":  # all that the turn did was undone
            await workspace.restore(snapshot)
        steps.append(_with_checkpoint(step, snapshot))
    return steps


def _compare(step: Step, answers: Sequence[ToolResponse]) -> None:
    """Of a failed call only the failure is compared: its message may differ."""
    recorded, _ = recorded_answers(step)
    if [_outcome(answer) for answer in recorded] != [_outcome(answer) for answer in answers]:
        raise BadInput(f"step {step.step_id} cannot be done again: its calls have other results now")


def _outcome(answer: ToolResponse) -> str | None:
    return None if answer.failed else _NUMBER.sub("#", answer.content)


def _with_checkpoint(step: Step, checkpoint: str) -> Step:
    ours = step.gametape_extra.model_copy(update={"checkpoint": checkpoint})
    extra = step.extra.model_copy(update={"gametape": ours}) if step.extra else None
    return step.model_copy(update={"extra": extra})
