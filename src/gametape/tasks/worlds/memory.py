"""The memory family: two episodes, of which the second can be solved only with the note that the first has written.

The writer is told a code and has a job to note it; the reader needs the code and is told the note, whatever it says.
The writer's reward includes the reader's success, which is the only measure of its note.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.protocols import Tool, Workspace
from gametape.tasks.worlds.experts import Expert, NoisyExpert
from gametape.tasks.worlds.families import VALUES
from gametape.tasks.worlds.plan import (
    KEEP_TOOL_NAME,
    NOTE_ITEM,
    WorldAction,
    WorldJob,
    WorldPlan,
    draw_plan,
    with_value,
)
from gametape.tasks.worlds.spec import WorldSpec, stream_seed
from gametape.tasks.worlds.tools import KEEP_TOOL
from gametape.tasks.worlds.world import World


@dataclass(frozen=True)
class MemoryWorld(World):
    """A world with one additional job, and a sentence before the first."""

    part: str
    given_text: str
    full_plan: WorldPlan

    @cached_property
    def plan(self) -> WorldPlan:
        return self.full_plan

    @property
    def name(self) -> str:
        return f"{super().name}-{self.part}"

    @property
    def bucket(self) -> str:
        return f"memory-{self.part}-{super().bucket}"

    @property
    def user_prompt(self) -> str:
        return f"{self.given_text} , {super().user_prompt}"

    @property
    def max_turns(self) -> int:
        return super().max_turns + 1

    def tools(self) -> Sequence[Tool]:
        return [*super().tools(), KEEP_TOOL]


@dataclass(frozen=True)
class WriterWorld(MemoryWorld):
    """The first episode of a pair. Its score has the note that it left."""

    pair: "MemoryPair"

    async def score(self, workspace: Workspace) -> EpisodeScore:
        score = await super().score(workspace)
        return replace(score, note=tuple(await read_note(workspace)))


@dataclass(frozen=True)
class MemoryPair:
    """The writer's and the reader's episode of one spec, whose settings hold for both."""

    spec: WorldSpec

    @cached_property
    def writer(self) -> WriterWorld:
        job = WorldJob(
            "keep the code",
            "keep",
            self._item,
            NOTE_ITEM,
            self._code,
            WorldAction(KEEP_TOOL_NAME, (self._item, self._code)),
        )
        plan = self._plans[0]
        full_plan = _with_job(plan, job, self._rng("writer"))
        full_plan = replace(
            full_plan, start={**plan.start, NOTE_ITEM: ()}, goal={**plan.goal, NOTE_ITEM: (self._item, self._code)}
        )
        return WriterWorld(self.spec, "writer", _code_text(self._item, self._code), full_plan, self)

    def reader(self, note: Sequence[str]) -> World:
        """The second episode, for a reader that is told this note (from `read_note`)."""
        plan = self._plans[1]
        kind = plan.kinds[self._item]
        text = plan.family.job_text("put", "the code", kind, self._item)
        action = WorldAction(plan.family.put_tool, (self._item, self._code))
        full_plan = _with_job(plan, WorldJob(text, "put", self._item, kind, self._code, action), self._rng("reader"))
        full_plan = replace(
            full_plan,
            start={**plan.start, NOTE_ITEM: ()},
            goal=with_value({**plan.goal, NOTE_ITEM: ()}, self._item, self._code),
        )
        return MemoryWorld(self.spec, "reader", _code_text(*note) if len(note) == 2 else "no code", full_plan)

    @cached_property
    def _plans(self) -> tuple[WorldPlan, WorldPlan]:
        """The plans of both episodes: the same family, different items."""
        first = draw_plan(self.spec)
        names: dict[str, object] = {"family": first.family.name, "seed": stream_seed(self.spec.seed, 1)}
        return first, draw_plan(self.spec.model_copy(update=names))

    @cached_property
    def _item(self) -> str:
        """The item of the code. It has no marking in the reader's plan."""
        plan = self._plans[1]
        return self._rng("item").choice([item for item in plan.kinds if item not in plan.markings])

    @cached_property
    def _code(self) -> str:
        return self._rng("code").choice(VALUES)

    def _rng(self, purpose: str) -> Random:
        return Random(f"{self.spec.bucket}/{self.spec.seed}/{purpose}")

    @property
    def note(self) -> tuple[str, str]:
        """The note that a writer is asked for."""
        return self._item, self._code


async def read_note(workspace: Workspace) -> list[str]:
    """The note in a writer's workspace after its episode."""
    return (await workspace.get(NOTE_ITEM)).decode().split("\n")[:-1]


def joint_score(writer: EpisodeScore, readers: Sequence[EpisodeScore]) -> EpisodeScore:
    """The writer's score times the mean reward of the readers of its note."""
    if not readers:
        raise BadInput("a note is worth what its readers make of it; there was none")
    mean_reward = sum(score.reward for score in readers) / len(readers)
    return replace(
        writer,
        passed=writer.passed and all(score.passed for score in readers),
        reward=writer.reward * mean_reward,
        detail=f"{writer.detail}; {mean_reward:.0%} of its readers succeeded",
    )


def forgetful_expert(skill: float, note_rate: float) -> Expert:
    """A noisy expert whose note has the right code with `note_rate`, and any other code otherwise."""
    ordinary = NoisyExpert(skill, note_rate)

    def choose(plan: WorldPlan, job: WorldJob, turn: int, rng: Random) -> WorldAction:
        if job.verb != "keep" or rng.random() < note_rate:
            return ordinary(plan, job, turn, rng)
        item, code = job.correct_action.values
        return WorldAction(KEEP_TOOL_NAME, (item, rng.choice([value for value in VALUES if value != code])))

    return choose


def _code_text(item: str, code: str) -> str:
    return f"code of {item} is {code}"


def _with_job(plan: WorldPlan, job: WorldJob, rng: Random) -> WorldPlan:
    """The plan with a job inserted at a random position."""
    at = rng.randint(0, len(plan.jobs))
    return replace(plan, jobs=(*plan.jobs[:at], job, *plan.jobs[at:]))
