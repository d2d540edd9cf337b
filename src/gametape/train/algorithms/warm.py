"""A warm start as an arm (`warm`): any policy, such as a pretrained one, learns to play worlds from lessons, before any
reward. It learns how tools are called, to keep to the rules under test as seldom as their worlds' base rate says, and
to read hints. A run with another arm begins with its weights (`model = RUN`). Its table is `[warm]`.
"""

from dataclasses import replace
from random import Random

from gametape.tasks.worlds.world import World
from gametape.train.algorithms.sft import DemonstrationSource, Sft, as_demonstration
from gametape.train.lessons import world_lesson
from gametape.train.policy import TrainablePolicy
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import GroupSource, RolloutSample


class Warm(Sft):
    """Lessons are imitated, the turns that follow a hint with the others."""

    def make_source(self, dataset: PromptDataset, policy: TrainablePolicy) -> GroupSource:
        return LessonSource(dataset, policy.chat_format, self.config)


class LessonSource(DemonstrationSource):
    """A `RolloutSource` of lessons, each in a world of its own like that of the prompt."""

    async def rollout(self, world: World, seed: int) -> RolloutSample:
        lesson = await world_lesson(
            world.spec.model_copy(update={"seed": seed}), self.chat_format, self.warm, Random(seed)
        )
        return as_demonstration(replace(RolloutSample.from_episode(lesson.episode), segments=tuple(lesson.segments)))
