"""A world as an `Environment`, run by the same agent loop and scored in the same way as a task in a sandbox."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.protocols import Tool, Workspace
from gametape.tasks.worlds.plan import WorldPlan, draw_plan
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.state import is_solved
from gametape.tasks.worlds.tools import family_tools
from gametape.tasks.worlds.workspace import WorldWorkspace

_SYSTEM = (
    "You are given one small job after the other. Do each with one call of one tool; the answer to it holds the next "
    "job. Some things bear a marking and may ask for another tool or a mode; errors say which."
)
_SPARE_TURNS = 4
"""Turns without a call that a policy may take."""


@dataclass(frozen=True)
class World:
    """An `Environment`. The episode ends with the answer to the last job. The reward is 1 if each item then contains
    what was asked for and nothing else, and 0 if not."""

    spec: WorldSpec

    @cached_property
    def plan(self) -> WorldPlan:
        return draw_plan(self.spec)

    @property
    def name(self) -> str:
        return f"world-{self.bucket}-{self.spec.seed}"

    @property
    def bucket(self) -> str:
        return self.spec.bucket

    @property
    def system_prompt(self) -> str:
        return _SYSTEM

    @property
    def user_prompt(self) -> str:
        return f"first {self.plan.jobs[0].text}"

    @property
    def max_turns(self) -> int:
        return self.spec.horizon * (2 if self.spec.retry else 1) + _SPARE_TURNS

    def tools(self) -> Sequence[Tool]:
        return family_tools(self.plan.family.name)

    async def reset(self) -> Workspace:
        return WorldWorkspace(self.spec, self.plan)

    async def score(self, workspace: Workspace) -> EpisodeScore:
        if not isinstance(workspace, WorldWorkspace):
            raise BadInput("a world can only score its own workspace")
        state = workspace.state
        good = is_solved(self.plan, state)
        wrong = sum(not mark.correct for mark in state.marks)
        detail = f"{wrong} of {len(state.marks)} calls went wrong, {len(state.queue)} jobs were left"
        return EpisodeScore(good, float(good), detail, marks=state.marks)
