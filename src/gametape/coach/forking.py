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

from gametape.agent.checkpoints import copied
from gametape.agent.limits import Limits, Spent
from gametape.agent.playing import Played, finish, setting_for
from gametape.agent.recording import InMemory, answers_of, reply_of
from gametape.agent.replay import line_of
from gametape.agent.rollout import Rollout
from gametape.agent.routing import Routing
from gametape.agent.work import Work
from gametape.coach.hinted_engine import hinted, playing
from gametape.core.assignment import Assignment
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment
from gametape.core.step import Step
from gametape.engines.conversation import Answer
from gametape.engines.token_conversation import TokenModel

_AT_ONCE = 16
"""Places that are open at a time."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
"""Times and addresses differ from run to run."""


@dataclass
class Cost:
    """What forks have taken."""

    forks: int = 0
    tokens: int = 0


@dataclass
class Ground:
    """A finished rollout, to be left at any of its turns. Forks are counted in `cost`."""

    assignment: Assignment
    model: TokenModel
    steps: Sequence[Step]
    """Those that led to its end, each with its state in this place."""
    environment: Environment
    limits: Limits
    temperature: float = 1.0
    name: str = ""
    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._numbers = count()

    async def branch(self, turn: int, hints: Mapping[int, str], seed: int) -> Played:
        """The rollout again up to a turn, which is sampled anew like all after it; hints are by turn."""
        line = [copied(step, number) for number, step in enumerate(self._before(turn), start=1)]
        sampling = Sampling(temperature=self.temperature, seed=seed)
        name = f"{self.name}/fork-{next(self._numbers):06}"
        setting = setting_for(self.assignment, hinted(self.model, hints), sampling, self.limits, name)
        checkpoint = next(step.ours.checkpoint for step in reversed(line) if step.ours.checkpoint)
        async with self._places:
            environment = await self.environment.fork(checkpoint)
            try:
                rollout = await Rollout.resume(setting, environment, InMemory(line))
                with playing(self.model.engine):
                    played = await finish(self.assignment, rollout)
            finally:
                await environment.close()
        self.cost.forks += 1
        self.cost.tokens += played.spent.tokens
        return played

    async def branches(self, turn: int, hints: Mapping[int, str], seeds: Sequence[int]) -> list[Played]:
        """Side by side. Branches of the same seed are the same up to the first hint in which they differ."""
        return await asyncio.gather(*(self.branch(turn, hints, seed) for seed in seeds))

    def _before(self, turn: int) -> Sequence[Step]:
        own = [at for at, step in enumerate(self.steps) if step.source == "agent" and not step.ours.summary]
        if not 1 <= turn <= len(own):
            raise BadInput(f"there is no turn {turn} to fork at; there are {len(own)}")
        return self.steps[: own[turn - 1]]


@asynccontextmanager
async def reopened(
    played: Played, model: TokenModel, limits: Limits, temperature: float = 1.0, name: str = ""
) -> AsyncIterator[Ground]:
    """Raises `BadInput` where the same calls are not answered as they were: nothing could be said of such forks."""
    environment = await played.assignment.open()
    try:
        steps = await _again(played, environment, model, limits)
        yield Ground(played.assignment, model, steps, environment, limits, temperature, name)
    finally:
        await environment.close()


async def _again(played: Played, environment: Environment, model: TokenModel, limits: Limits) -> list[Step]:
    setting = setting_for(played.assignment, model, Sampling(), limits)
    work, spent = Work(), Spent()
    routing = Routing(setting.toolmaker(work), setting.limits, setting.constraints)
    steps: list[Step] = []
    was = now = ""
    for step in line_of(played.steps):
        checkpoint = step.ours.checkpoint
        if checkpoint is None:
            steps.append(step)
            continue
        if step.source == "agent" and not step.ours.summary:
            spent.turns += 1
            work.turn = spent.turns
            routed = await routing.route(reply_of(step), environment, spent)
            _compare(step, routed.answers)
        if checkpoint != was:
            was, now = checkpoint, await environment.snapshot()
        elif step.source == "agent":  # all that the turn did was undone
            await environment.restore(now)
        steps.append(_at(step, now))
    return steps


def _compare(step: Step, answers: Sequence[Answer]) -> None:
    """Of what failed it counts only that it failed: words about it may differ with what else there is."""
    recorded, _ = answers_of(step)
    if [_outcome(answer) for answer in recorded] != [_outcome(answer) for answer in answers]:
        raise BadInput(f"step {step.step_id} cannot be done again: its calls are answered otherwise now")


def _outcome(answer: Answer) -> str | None:
    return None if answer.failed else _NUMBER.sub("#", answer.content)


def _at(step: Step, checkpoint: str) -> Step:
    ours = step.ours.model_copy(update={"checkpoint": checkpoint})
    extra = step.extra.model_copy(update={"gametape": ours}) if step.extra else None
    return step.model_copy(update={"extra": extra})
