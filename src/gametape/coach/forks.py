"""Play on from a turn of a finished rollout, with these hints or with those.

The rollout's place is gone when it is over. So its calls are made again in a new one, without asking the model, and
every turn's state is kept: from there any number of branches begin.
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
from gametape.agent.recorder import MemoryRecorder, recorded_answers, recorded_reply
from gametape.agent.replay import active_steps, as_copied_context
from gametape.agent.rollout import Rollout
from gametape.agent.tool_router import ToolRouter
from gametape.coach.hinted_engine import with_hints
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment, Workspace
from gametape.core.step import Step
from gametape.engines.conversation import ToolResponse
from gametape.engines.token_conversation import TokenModel

_MAX_OPEN = 16
"""Places that are open at a time."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
"""Times and addresses differ from run to run."""


@dataclass
class ForkCost:
    """What forks have taken."""

    forks: int = 0
    tokens: int = 0


@dataclass
class EpisodeForker:
    """A finished rollout, to be left at any of its turns. Forks are counted in `cost`."""

    environment: Environment
    model: TokenModel
    steps: Sequence[Step]
    """Those that led to its end, each with its state in this place."""
    workspace: Workspace
    limits: RolloutLimits
    temperature: float = 1.0
    name: str = ""
    cost: ForkCost = field(default_factory=ForkCost)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(_MAX_OPEN)
        self._numbers = count()

    async def branch(self, turn: int, hints: Mapping[int, str], seed: int) -> Episode:
        """The rollout again up to a turn, which is sampled anew like all after it; hints are by turn."""
        line = [as_copied_context(step, number) for number, step in enumerate(self._before(turn), start=1)]
        sampling = Sampling(temperature=self.temperature, seed=seed)
        name = f"{self.name}/fork-{next(self._numbers):06}"
        setting = rollout_config_for(self.environment, with_hints(self.model, hints), sampling, self.limits, name)
        checkpoint = next(step.gametape_extra.checkpoint for step in reversed(line) if step.gametape_extra.checkpoint)
        async with self._places:
            environment = await self.workspace.fork(checkpoint)
            try:
                rollout = await Rollout.resume(setting, environment, MemoryRecorder(line))
                with self.model.engine.participant():
                    played = await finish_episode(self.environment, rollout)
            finally:
                await environment.close()
        self.cost.forks += 1
        self.cost.tokens += played.usage.tokens
        return played

    async def branches(self, turn: int, hints: Mapping[int, str], seeds: Sequence[int]) -> list[Episode]:
        """Side by side. Branches of the same seed are the same up to the first hint in which they differ."""
        return await asyncio.gather(*(self.branch(turn, hints, seed) for seed in seeds))

    def _before(self, turn: int) -> Sequence[Step]:
        own = [at for at, step in enumerate(self.steps) if step.source == "agent" and not step.gametape_extra.summary]
        if not 1 <= turn <= len(own):
            raise BadInput(f"there is no turn {turn} to fork at; there are {len(own)}")
        return self.steps[: own[turn - 1]]


@asynccontextmanager
async def replay_for_forks(
    episode: Episode, model: TokenModel, limits: RolloutLimits, temperature: float = 1.0, name: str = ""
) -> AsyncIterator[EpisodeForker]:
    """Raises `BadInput` where the same calls are not answered as they were: nothing could be said of such forks."""
    workspace = await episode.environment.reset()
    try:
        steps = await _replay(episode, workspace, model, limits)
        yield EpisodeForker(episode.environment, model, steps, workspace, limits, temperature, name)
    finally:
        await workspace.close()


async def _replay(episode: Episode, workspace: Workspace, model: TokenModel, limits: RolloutLimits) -> list[Step]:
    setting = rollout_config_for(episode.environment, model, Sampling(), limits)
    work, spent = AgentState(), RolloutUsage()
    routing = ToolRouter(setting.make_tools(work), setting.limits, setting.constraints)
    steps: list[Step] = []
    was = now = ""
    for step in active_steps(episode.steps):
        checkpoint = step.gametape_extra.checkpoint
        if checkpoint is None:
            steps.append(step)
            continue
        if step.source == "agent" and not step.gametape_extra.summary:
            spent.turns += 1
            work.turn = spent.turns
            routed = await routing.route(recorded_reply(step), workspace, spent)
            _compare(step, routed.answers)
        if checkpoint != was:
            was, now = checkpoint, await workspace.snapshot()
        elif step.source == "agent":  # all that the turn did was undone
            await workspace.restore(now)
        steps.append(_with_checkpoint(step, now))
    return steps


def _compare(step: Step, answers: Sequence[ToolResponse]) -> None:
    """Of what failed it counts only that it failed: words about it may differ with what else there is."""
    recorded, _ = recorded_answers(step)
    if [_outcome(answer) for answer in recorded] != [_outcome(answer) for answer in answers]:
        raise BadInput(f"step {step.step_id} cannot be done again: its calls are answered otherwise now")


def _outcome(answer: ToolResponse) -> str | None:
    return None if answer.failed else _NUMBER.sub("#", answer.content)


def _with_checkpoint(step: Step, checkpoint: str) -> Step:
    ours = step.gametape_extra.model_copy(update={"checkpoint": checkpoint})
    extra = step.extra.model_copy(update={"gametape": ours}) if step.extra else None
    return step.model_copy(update={"extra": extra})
