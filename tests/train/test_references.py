"""Hints that training uses are checked against the answer, as those of `gametape coach` are."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from gametape.agent.limits import RolloutLimits
from gametape.agent.task_environment import TaskSandboxPool
from gametape.core.config import RunConfig
from gametape.evals.suite import item_from_task
from gametape.tasks.loader import load_task
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, perfect_expert, script_episode
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.coach_annotator import CoachAnnotator, leak_checker_for
from gametape.train.demonstrations import demonstrate
from gametape.train.rollouts import PromptRequest, RolloutGroup, RolloutSample

from .test_coach_annotator import TERSE

TASK = Path(__file__).parents[2] / "examples/tasks/slugs"
WORLD = World(WorldSpec(seed=2, load_bearing=2))


def test_of_a_world_the_arguments_of_right_calls_are_secret_and_its_rules_are_not() -> None:
    reference = leak_checker_for(WORLD)
    for act in script_episode(WORLD, perfect_expert):
        assert reference.leak(f"rule : {act.action.tool} {' '.join(act.action.values)}")
        assert not (act.job.marking and reference.leak(act.job.hint()))


def test_of_a_task_what_only_its_solution_has_is_secret(tmp_path: Path) -> None:
    subject = load_task(TASK, tmp_path)
    item = item_from_task(subject, cast(TaskSandboxPool, None), tmp_path)
    reference, solution = leak_checker_for(item.environment), subject.reference
    assert solution is not None
    changed = [path for path in subject.task.source_paths if solution.text(path) != subject.start.text(path)]
    new = {*solution.text(changed[0]).splitlines()} - {*subject.start.text(changed[0]).splitlines()}
    assert reference.leak(f"rule : {max(new, key=len)}")
    assert not reference.leak(f"rule : {item.environment.user_prompt.split('.')[0]}")


def test_training_gives_the_coach_what_it_must_not_say() -> None:
    given: list[Any] = []

    async def look(*words: Any) -> list[Any]:
        given.append(words)
        return []

    turns = [number for number, job in enumerate(WORLD.plan.jobs, start=1) if job.marking]
    played = asyncio.run(demonstrate(WORLD, ErrorAtTurnsExpert(turns), TERSE)).episode
    config = RunConfig(arm="rlvr_ttf", tasks="worlds:easy")
    coaching = CoachAnnotator(config, cast(Any, None), RolloutLimits(), gated=False, score_group=lambda _group: {})
    coaching._coach = cast(Any, SimpleNamespace(cost=SimpleNamespace(tokens=0), annotate=look))
    asyncio.run(
        coaching.annotate(RolloutGroup(PromptRequest(0, 0, 0), (RolloutSample.from_episode(played),)), [played])
    )
    ((_, _, _, reference),) = given
    assert reference == leak_checker_for(WORLD)
