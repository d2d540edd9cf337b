"""The memory family: two episodes, of which the second can be done only with what the first has noted.

The first is told a code and has to keep it; the second needs it and is told the note, whatever it says. The writer's
reward includes the reader's success: nothing else says what its note was worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from gametape.core.assignment import Judged
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment, Tool
from gametape.tasks.worlds.families import VALUES
from gametape.tasks.worlds.plan import KEEP, NOTE, Job, Move, Plan, plan_of, with_value
from gametape.tasks.worlds.spec import WorldSpec, seed_of
from gametape.tasks.worlds.tools import KEEPING
from gametape.tasks.worlds.world import World


@dataclass(frozen=True)
class _Episode(World):
    """A world with one more job in it, and something said before the first."""

    part: str
    known: str
    whole: Plan

    @cached_property
    def plan(self) -> Plan:
        return self.whole

    @property
    def name(self) -> str:
        return f"{super().name}-{self.part}"

    @property
    def cell(self) -> str:
        return f"memory-{self.part}-{super().cell}"

    @property
    def opening(self) -> str:
        return f"{self.known} , {super().opening}"

    @property
    def turns(self) -> int:
        return super().turns + 1

    def tools(self) -> Sequence[Tool]:
        return [*super().tools(), KEEPING]


@dataclass(frozen=True)
class MemoryPair:
    """Both episodes of one spec, whose knobs hold for each of them."""

    spec: WorldSpec

    @cached_property
    def writer(self) -> World:
        job = Job("keep the code", "keep", self._item, NOTE, self._code, Move(KEEP, (self._item, self._code)))
        plan = self._plans[0]
        whole = _inserted(plan, job, self._rng("writer"))
        whole = replace(whole, start={**plan.start, NOTE: ()}, goal={**plan.goal, NOTE: (self._item, self._code)})
        return _Episode(self.spec, "writer", _told(self._item, self._code), whole)

    def reader(self, note: Sequence[str]) -> World:
        """The second episode, for a reader that is told this note; see `note_in`."""
        plan = self._plans[1]
        kind = plan.kinds[self._item]
        text = plan.family.job_text("put", "the code", kind, self._item)
        usual = Move(plan.family.put_tool, (self._item, self._code))
        whole = _inserted(plan, Job(text, "put", self._item, kind, self._code, usual), self._rng("reader"))
        whole = replace(
            whole, start={**plan.start, NOTE: ()}, goal=with_value({**plan.goal, NOTE: ()}, self._item, self._code)
        )
        return _Episode(self.spec, "reader", _told(*note) if len(note) == 2 else "no code", whole)

    @cached_property
    def _plans(self) -> tuple[Plan, Plan]:
        """Of the same family, each with its own things."""
        first = plan_of(self.spec)
        names: dict[str, object] = {"family": first.family.name, "seed": seed_of(self.spec.seed, 1)}
        return first, plan_of(self.spec.model_copy(update=names))

    @cached_property
    def _item(self) -> str:
        """A thing that bears no marking where it is needed."""
        plan = self._plans[1]
        return self._rng("item").choice([item for item in plan.kinds if item not in plan.marked])

    @cached_property
    def _code(self) -> str:
        return self._rng("code").choice(VALUES)

    def _rng(self, purpose: str) -> Random:
        return Random(f"{self.spec.cell}/{self.spec.seed}/{purpose}")


async def note_in(environment: Environment) -> list[str]:
    """What a writer has left when its episode is over."""
    return (await environment.get(NOTE)).decode().split("\n")[:-1]


def joint(writer: Judged, readers: Sequence[Judged]) -> Judged:
    """What a writer's attempt is worth, given those that read its note: its own success times theirs."""
    if not readers:
        raise BadInput("a note is worth what its readers make of it; there was none")
    later = sum(judged.reward for judged in readers) / len(readers)
    return replace(
        writer,
        passed=writer.passed and all(judged.passed for judged in readers),
        reward=writer.reward * later,
        detail=f"{writer.detail}; {later:.0%} of its readers succeeded",
    )


def _told(item: str, code: str) -> str:
    return f"code of {item} is {code}"


def _inserted(plan: Plan, job: Job, rng: Random) -> Plan:
    """The job somewhere among the others."""
    at = rng.randint(0, len(plan.jobs))
    return replace(plan, jobs=(*plan.jobs[:at], job, *plan.jobs[at:]))
