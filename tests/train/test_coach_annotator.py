"""The annotator: controls remove exactly what they name, and hints are checked against the answer."""

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.task_environment import TaskSandboxPool
from gametape.core.config import RunConfig, TTFConfig
from gametape.core.hint import Hint, HintGates, HintVersions
from gametape.core.token_segments import split_segments
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import word_tokenizer_json
from gametape.evals.suite import item_from_task
from gametape.tasks.loader import load_task
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, perfect_expert, script_episode
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words
from gametape.tasks.worlds.world import World
from gametape.train.coach_annotator import CoachAnnotator, HintControls, leak_checker_for
from gametape.train.demonstrations import demonstrate
from gametape.train.rollouts import DistillTarget, PromptRequest, RolloutGroup, RolloutSample

TERSE = TerseChatFormat(TrainedTokenizer(word_tokenizer_json(vocabulary_words())), tool_signatures())


@pytest.fixture(scope="module")
def episode() -> Episode:
    return asyncio.run(demonstrate(World(WorldSpec(seed=1, horizon=6)), perfect_expert, TERSE)).episode


def hint(kind: str = "a", step: int = 4) -> Hint:
    return Hint(
        trajectory_id="t",
        step=step,
        span=(0, 4),
        source="tool_error",
        type=kind,
        text=f"rule : {kind}",
        hint_ids=[],
        gates=HintGates(),
        used=True,
        evidence="",
        noticed=step,
        versions=HintVersions(policy=0, teacher=0),
    )


def controlled_hints(control: Any, episode: Episode, share: float = 1.0) -> list[Hint]:
    controls = HintControls(TTFConfig(control=control, control_share=share), seed=3)
    return [controls.apply(hint(kind, step), episode) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_without_a_control_hints_are_as_they_were(episode: Episode) -> None:
    assert controlled_hints("none", episode) == [hint(kind, step) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_a_shuffled_hint_is_that_of_another_type(episode: Episode) -> None:
    shuffled = controlled_hints("shuffled", episode)
    assert all(item.text != f"rule : {item.type}" for item in shuffled)
    assert {item.text for item in shuffled[3:]} <= {"rule : a", "rule : b"}
    assert [item.step for item in shuffled] == [3, 4, 5] * 3


def test_a_neutral_hint_is_the_same_everywhere(episode: Episode) -> None:
    assert len({one.text for one in controlled_hints("neutral", episode)}) == 1


def test_elsewhere_is_another_turn_with_the_same_hint(episode: Episode) -> None:
    for one, step in zip(controlled_hints("elsewhere", episode), [3, 4, 5] * 3, strict=True):
        assert one.step != step
        assert one.text == f"rule : {one.type}"
        turn = next(turn for turn in episode.steps if turn.step_id == one.step)
        tokens = turn.tokens()
        assert tokens is not None
        assert one.span == (0, len(tokens.completion_ids))


def test_of_many_hints_so_many_become_targets_as_are_asked_for(episode: Episode) -> None:
    model = cast(Any, SimpleNamespace(chat_format=TERSE))
    steps = [step.step_id for step in episode.steps if step.source == "agent"]
    hints = [hint("a", step) for step in steps]
    for most, expected in ((0, len(steps)), (2, 2), (99, len(steps))):
        ttf = TTFConfig(targets_per_rollout=most)
        config = RunConfig(arm="rlvr_ttf", tasks="worlds:easy", ttf=ttf)
        coaching = CoachAnnotator(config, model, RolloutLimits(), gated=False, score_group=lambda _group: {})
        targets = coaching.targets_for(episode, hints, "r", 0)
        assert len(targets) == expected
        assert [target.step for target in targets] == sorted(target.step for target in targets)


def test_a_share_of_them_is_left_alone(episode: Episode) -> None:
    kept = [one.text.endswith(one.type) for one in controlled_hints("neutral", episode, share=0.5)]
    assert 0 < sum(kept) < len(kept)


def test_what_is_learned_in_place_of_a_turn_stands_where_the_turn_stood(episode: Episode) -> None:
    (own,) = split_segments(episode.steps)
    positions = [at for at, step in enumerate(own.steps) if step == 4]
    target = DistillTarget(positions[0], len(positions), positions[0], (), step=4, learn="penalty")
    penalty = target.replacement_segment(own)
    assert penalty.ids == own.ids[: positions[-1] + 1]
    assert [at for at, bit in enumerate(penalty.mask) if bit] == positions
    other = DistillTarget(
        positions[0], len(positions), positions[0], (), step=4, learn="resample", resampled=(7, 8)
    ).replacement_segment(own)
    assert other.ids == [*own.ids[: positions[0]], 7, 8]
    assert other.mask == [0] * positions[0] + [1, 1]


TASK = Path(__file__).parents[2] / "examples/tasks/slugs"
WORLD = World(WorldSpec(seed=2, load_bearing=2))


def test_of_a_world_the_arguments_of_right_calls_are_secret_and_its_rules_are_not() -> None:
    reference = leak_checker_for(WORLD)
    for act in script_episode(WORLD, perfect_expert):
        assert reference.leak(f"rule : {act.action.tool} {' '.join(act.action.values)}")
        assert not (act.job.marking and reference.leak(act.job.hint()))


def test_of_a_task_what_only_its_solution_has_is_secret(tmp_path: Path) -> None:
    loaded_task = load_task(TASK, tmp_path)
    item = item_from_task(loaded_task, cast(TaskSandboxPool, SimpleNamespace(profile="full")), tmp_path)
    reference, solution = leak_checker_for(item.environment), loaded_task.reference
    assert solution is not None
    changed = [path for path in loaded_task.task.source_paths if solution.text(path) != loaded_task.start.text(path)]
    new = {*solution.text(changed[0]).splitlines()} - {*loaded_task.start.text(changed[0]).splitlines()}
    assert reference.leak(f"rule : {max(new, key=len)}")
    assert not reference.leak(f"rule : {item.environment.user_prompt.split('.')[0]}")


def test_a_tool_may_be_named_though_the_solution_uses_a_name_like_it(tmp_path: Path) -> None:
    place = tmp_path / "task"
    shutil.copytree(TASK, place)
    (source,) = (place / "solution").rglob("*.py")
    source.write_text(
        f"{source.read_text()}\n\ndef _search(pattern: str) -> str:\n    shell = jump = pattern\n    return shell\n"
    )
    item = item_from_task(load_task(place, tmp_path), cast(TaskSandboxPool, SimpleNamespace(profile="full")), tmp_path)
    reference = leak_checker_for(item.environment)
    assert not reference.leak("Reminder: the tools are shell, jump, search.")
    assert reference.leak("Reminder: call _search.") == "_search"


def test_training_gives_the_coach_what_it_must_not_say() -> None:
    given: list[Any] = []

    async def look(*words: Any, writers: Any) -> list[Any]:
        given.append(words)
        assert writers == ()
        return []

    turns = [number for number, job in enumerate(WORLD.plan.jobs, start=1) if job.marking]
    episode = asyncio.run(demonstrate(WORLD, ErrorAtTurnsExpert(turns), TERSE)).episode
    config = RunConfig(arm="rlvr_ttf", tasks="worlds:easy")
    model = cast(Any, SimpleNamespace(chat_format=TERSE))
    coaching = CoachAnnotator(config, model, RolloutLimits(), gated=False, score_group=lambda _group: {})
    coaching._coach = cast(Any, SimpleNamespace(cost=SimpleNamespace(tokens=0), annotate=look))
    asyncio.run(
        coaching.annotate(RolloutGroup(PromptRequest(0, 0, 0), (RolloutSample.from_episode(episode),)), [episode])
    )
    ((_, _, _, reference),) = given
    assert reference == leak_checker_for(WORLD)
