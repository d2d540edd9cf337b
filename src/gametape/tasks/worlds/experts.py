"""Policies that know a world: one that does all right, one that errs at given rates, one that errs at given turns.

A world answers the same to the same calls, so a policy that knows it can write down its whole episode beforehand.
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
"""What to do about a job in a turn, counted from 1."""


def perfect_expert(_plan: WorldPlan, job: WorldJob, _turn: int, _rng: Random) -> WorldAction:
    return job.correct_action


@dataclass(frozen=True)
class NoisyExpert:
    """Right at ordinary turns with probability `skill`, at load-bearing ones with `base_rate`: there it otherwise
    follows the convention. A rule in `never` is never kept to."""

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
    """Right but in these turns: there it forgets the rule, or slips where there is none."""

    wrong_turns: Collection[int]

    def __call__(self, plan: WorldPlan, job: WorldJob, turn: int, rng: Random) -> WorldAction:
        if turn not in self.wrong_turns:
            return job.correct_action
        return job.default_action if job.marking else _slip(plan, job, rng)


class ExpertTurn(NamedTuple):
    """One turn of an expert: what there was to do, and what it did."""

    job: WorldJob
    action: WorldAction


def script_episode(world: World, expert: Expert, seed: int = 0) -> list[ExpertTurn]:
    """An expert's whole episode, one call a turn. A seed gives the same errors again."""
    rng = Random(f"{world.name}/{seed}")
    plan, spec = world.plan, world.spec
    state = initial_state(plan)
    acts: list[ExpertTurn] = []
    while not state.done:
        job = current_job(plan, state)
        acts.append(ExpertTurn(job, expert(plan, job, len(acts) + 1, rng)))
        state, _ = apply_action(plan, state, acts[-1].action, len(acts), delay=spec.error_delay, retry=spec.retry)
    return acts


def _slip(plan: WorldPlan, job: WorldJob, rng: Random) -> WorldAction:
    """An error of the hand: the wrong thing, the wrong value or the wrong tool."""
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
