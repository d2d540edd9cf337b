"""A warm start as an arm (`warm`): any policy, such as a pretrained one, learns to play worlds or to work on tasks from
lessons, before any reward. It learns how tools are called, to make the faults under test as often as the expert does,
and to read hints. A run with another arm begins with its weights (`model = RUN`). Its table is `[warm]`.
"""

from dataclasses import replace
from random import Random

from gametape.agent.task_environment import TaskEnvironment
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.tasks.worlds.world import World
from gametape.train.algorithms.sft import DemonstrationSource, Sft, as_demonstration
from gametape.train.lessons import Lesson, world_lesson
from gametape.train.policy import TrainablePolicy
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import GroupSource, RolloutSample
from gametape.train.task_lessons import task_lesson


class Warm(Sft):
    """Lessons are imitated, the turns that follow a hint with the others."""

    def make_source(self, dataset: PromptDataset, policy: TrainablePolicy) -> GroupSource:
        return LessonSource(dataset, policy.chat_format, self.config)


class LessonSource(DemonstrationSource):
    """A `RolloutSource` of lessons: in a world of its own like that of the prompt, or on the prompt's task."""

    async def rollout(self, environment: Environment, seed: int) -> RolloutSample:
        lesson = await self._lesson(environment, Random(seed), seed)
        return as_demonstration(replace(RolloutSample.from_episode(lesson.episode), segments=tuple(lesson.segments)))

    async def _lesson(self, environment: Environment, rng: Random, seed: int) -> Lesson:
        if isinstance(environment, World):
            spec = environment.spec.model_copy(update={"seed": seed})
            return await world_lesson(spec, self.chat_format, self.warm, rng)
        if isinstance(environment, TaskEnvironment) and "write" in {tool.name for tool in environment.tools()}:
            return await task_lesson(environment, self.chat_format, self.warm, rng)
        raise BadInput(
            "lessons are there for worlds and for tasks with tools: give worlds:NAME, a directory of tasks, or "
            "kata-chains:FAMILY:FUNCTIONS in place of katas that are put as questions"
        )
