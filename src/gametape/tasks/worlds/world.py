"""A world as an assignment: played through the same loop and judged in the same way as a task in a sandbox."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gametape.core.assignment import Judged
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment, Tool
from gametape.tasks.worlds.place import WorldPlace
from gametape.tasks.worlds.plan import Plan, plan_of
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.state import passed
from gametape.tasks.worlds.tools import tools_of

_SYSTEM = (
    "You are given one small job after the other. Do each with one call of one tool; the answer to it holds the next "
    "job. Some things bear a marking and may ask for another tool or a mode; errors say which."
)
_SPARE_TURNS = 4
"""For turns that hold no call."""


@dataclass(frozen=True)
class World:
    """An `Assignment`. It ends itself with the answer to its last job. Its reward is 1 if each thing then holds what
    was asked for and nothing else, and 0 if not."""

    spec: WorldSpec

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.spec)

    @property
    def name(self) -> str:
        return f"world-{self.cell}-{self.spec.seed}"

    @property
    def cell(self) -> str:
        return self.spec.cell

    @property
    def system(self) -> str:
        return _SYSTEM

    @property
    def opening(self) -> str:
        return f"first {self.plan.jobs[0].text}"

    @property
    def turns(self) -> int:
        return self.spec.horizon * (2 if self.spec.retry else 1) + _SPARE_TURNS

    def tools(self) -> Sequence[Tool]:
        return tools_of(self.plan.family.name)

    async def open(self) -> Environment:
        return WorldPlace(self.spec, self.plan)

    async def judge(self, environment: Environment) -> Judged:
        if not isinstance(environment, WorldPlace):
            raise BadInput("a world can only judge its own place")
        state = environment.state
        good = passed(self.plan, state)
        wrong = sum(not mark.right for mark in state.marks)
        detail = f"{wrong} of {len(state.marks)} calls went wrong, {len(state.queue)} jobs were left"
        return Judged(good, float(good), detail, marks=state.marks)
