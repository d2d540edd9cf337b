"""Scripted policies that know a world's plan: one makes no errors, one errs at given rates, one at given turns.

A world is deterministic, so a policy that knows it can write down its whole episode in advance.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from gametape.tasks.worlds.families import VALUES
from gametape.tasks.worlds.plan import WorldAction, WorldJob, WorldPlan
from gametape.tasks.worlds.rules import SPECIAL_TOOLS
from gametape.tasks.worlds.state import apply_action, current_job, initial_state
from gametape.tasks.worlds.world import World

Expert = Callable[[WorldPlan, WorldJob, int, Random], WorldAction]
"""Chooses the action for a job. Arguments: plan, job, turn (counted from 1), random numbers."""


def perfect_expert(_plan: WorldPlan, job: WorldJob, _turn: int, _rng: Random) -> WorldAction:
    return job.correct_action


@dataclass(frozen=True)
class NoisyExpert:
    """Correct at ordinary turns with probability `skill`, and at load-bearing ones with `base_rate`, where it otherwise
    follows the convention. It never follows a rule in `ignored_rules`."""

    skill: float
    base_rate: float
    ignored_rules: Collection[str] = ()

    def __call__(self, plan: WorldPlan, job: WorldJob, _turn: int, rng: Random) -> WorldAction:
        if not job.marking:
            return job.correct_action if rng.random() < self.skill else _slip(plan, job, rng)
        keeps = rng.random() < self.base_rate
        return job.correct_action if keeps and job.marking not in self.ignored_rules else job.default_action


@dataclass(frozen=True)
class ErrorAtTurnsExpert:
    """Correct except in `wrong_turns`, where it follows the convention against the rule, or slips if there is none."""

    wrong_turns: Collection[int]

    def __call__(self, plan: WorldPlan, job: WorldJob, turn: int, rng: Random) -> WorldAction:
        if turn not in self.wrong_turns:
            return job.correct_action
        return job.default_action if job.marking else _slip(plan, job, rng)


class ExpertTurn(NamedTuple):
    """One turn of an expert: the job, and the action it chose."""

    job: WorldJob
    action: WorldAction


def script_episode(world: World, expert: Expert, seed: int = 0) -> list[ExpertTurn]:
    """An expert's whole episode, one call a turn. The same seed gives the same errors."""
    rng = Random(f"{world.name}/{seed}")
    plan, spec = world.plan, world.spec
    state = initial_state(plan)
    turns: list[ExpertTurn] = []
    while not state.done:
        job = current_job(plan, state)
        turns.append(ExpertTurn(job, expert(plan, job, len(turns) + 1, rng)))
        state, _ = apply_action(plan, state, turns[-1].action, len(turns), delay=spec.error_delay, retry=spec.retry)
    return turns


def _slip(plan: WorldPlan, job: WorldJob, rng: Random) -> WorldAction:
    """The correct action with a wrong item, a wrong value or a wrong tool."""
    tool, (item, value, *mode) = job.correct_action
    wrong = rng.choice(("item", "value", "tool"))
    if wrong == "item":
        item = rng.choice([other for other in plan.kinds if other != item])
    elif wrong == "value":
        value = rng.choice([other for other in VALUES if other != value])
    else:
        names = (plan.family.put_tool, plan.family.drop_tool, *SPECIAL_TOOLS)
        tool = rng.choice([other for other in names if other != tool])
    return WorldAction(tool, (item, value, *mode))
