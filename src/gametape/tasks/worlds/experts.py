"""Policies that know a world: one that does all right, one that errs at given rates, one that errs at given turns.

A world answers the same to the same calls, so a policy that knows it can write down its whole episode beforehand.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from gametape.tasks.worlds.families import VALUES
from gametape.tasks.worlds.plan import Job, Move, Plan
from gametape.tasks.worlds.rules import SPECIAL_TOOLS
from gametape.tasks.worlds.state import after, at_hand, beginning
from gametape.tasks.worlds.world import World

Expert = Callable[[Plan, Job, int, Random], Move]
"""What to do about a job in a turn, counted from 1."""


def perfect(_plan: Plan, job: Job, _turn: int, _rng: Random) -> Move:
    return job.right


@dataclass(frozen=True)
class Noisy:
    """Right at ordinary turns with probability `skill`, at load-bearing ones with `base_rate`: there it otherwise
    follows the convention. A rule in `never` is never kept to."""

    skill: float
    base_rate: float
    never: Collection[str] = ()

    def __call__(self, plan: Plan, job: Job, _turn: int, rng: Random) -> Move:
        if not job.marking:
            return job.right if rng.random() < self.skill else _slip(plan, job, rng)
        keeps = rng.random() < self.base_rate
        return job.right if keeps and job.marking not in self.never else job.usual


@dataclass(frozen=True)
class Clumsy:
    """Right but in these turns: there it forgets the rule, or slips where there is none."""

    wrong_turns: Collection[int]

    def __call__(self, plan: Plan, job: Job, turn: int, rng: Random) -> Move:
        if turn not in self.wrong_turns:
            return job.right
        return job.usual if job.marking else _slip(plan, job, rng)


class Act(NamedTuple):
    """One turn of an expert: what there was to do, and what it did."""

    job: Job
    move: Move


def script(world: World, expert: Expert, seed: int = 0) -> list[Act]:
    """An expert's whole episode, one call a turn. A seed gives the same errors again."""
    rng = Random(f"{world.name}/{seed}")
    plan, spec = world.plan, world.spec
    state = beginning(plan)
    acts: list[Act] = []
    while not state.over:
        job = at_hand(plan, state)
        acts.append(Act(job, expert(plan, job, len(acts) + 1, rng)))
        state, _ = after(plan, state, acts[-1].move, len(acts), delay=spec.error_delay, retry=spec.retry)
    return acts


def _slip(plan: Plan, job: Job, rng: Random) -> Move:
    """An error of the hand: the wrong thing, the wrong value or the wrong tool."""
    tool, (item, value, *mode) = job.right
    wrong = rng.choice(("item", "value", "tool"))
    if wrong == "item":
        item = rng.choice([other for other in plan.kinds if other != item])
    elif wrong == "value":
        value = rng.choice([other for other in VALUES if other != value])
    else:
        names = (plan.family.put_tool, plan.family.drop_tool, *SPECIAL_TOOLS)
        tool = rng.choice([other for other in names if other != tool])
    return Move(tool, (item, value, *mode))
