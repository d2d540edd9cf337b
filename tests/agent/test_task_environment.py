"""Tasks as environments: run in real sandboxes side by side, scored by the verifier, with nothing left behind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.task_environment import TaskEnvironment, TaskSandboxPool
from gametape.agent.task_setup import TaskPresentation, present_as_question, present_as_work
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.task import SplitSurface
from gametape.engines.chat_formats.code_block import with_code_block_calls
from gametape.engines.scripted import ScriptedTurn, scripted_model
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.snapshots.errors import StoreFull

from ..tasks.made import split_subject, subject
from .bench import DONE, runs, says

DEEP = """python3 -c 'import os
for _ in range(100): os.mkdir("d" * 60); os.chdir("d" * 60)'"""
"""A path longer than any call takes, in few directories."""
RIGHT = "def add(a, b):\n    return a + b\n"
pytestmark = pytest.mark.usefixtures("tasks_prepared_once")


def writes(content: str) -> ScriptedTurn:
    return says("I write it.", ("write", {"path": "add.py", "content": content}))


async def run_script(
    sandboxes: TaskSandboxPool, task: LoadedTask, presentation: TaskPresentation, *turns: ScriptedTurn
) -> Episode:
    environment = TaskEnvironment(sandboxes, task, presentation)
    model = with_code_block_calls(scripted_model("scripted", turns), "answer", "code")
    return await run_episode(environment, rollout_config_for(environment, model, Sampling(), RolloutLimits()))


def summary(episode: Episode) -> tuple[bool, bool, bool]:
    assert episode.score is not None
    return episode.score.passed, episode.score.reward > 0, episode.score.hacked


def test_many_attempts_at_once_are_scored_each_by_its_own_files(tmp_path: Path) -> None:
    task = split_subject()

    async def run() -> tuple[list[Episode], int]:
        async with TaskSandboxPool(tmp_path / "home") as sandboxes:
            work = present_as_work(task, tmp_path / "home", max_turns=3)
            scripts: list[list[ScriptedTurn]] = [
                [runs("cd tests; ls"), writes(RIGHT), DONE],
                [runs(DEEP), writes("def add(a, b):\n    return 3\n"), DONE],
                [DONE],
                [runs("sleep 0.1"), runs("echo x > left.txt"), runs("cat left.txt"), writes(RIGHT), DONE],
            ]
            episodes = await asyncio.gather(*(run_script(sandboxes, task, work, *turns) for turns in scripts))
            return episodes, len(sandboxes._store.snapshots())

    episodes, left = asyncio.run(run())
    assert [summary(one) for one in episodes][:3] == [(True, True, False), (False, False, False), (False, False, False)]
    assert [one.end.outcome for one in episodes] == [None, None, None, "limit"]
    assert summary(episodes[3])[0] is False
    assert left == 1  # the starting tree


def test_a_question_is_answered_with_a_block_and_a_second_try(tmp_path: Path) -> None:
    task = subject(source_paths=["add.py"], mode="split", split=SplitSurface(modules=["add"]))
    right, late = f"Like this:\n```python\n{RIGHT}```\nDone.", ScriptedTurn(text="What do you mean?")

    async def run() -> list[Episode]:
        async with TaskSandboxPool(tmp_path / "home") as sandboxes:
            presentation = present_as_question(task)
            return [
                await run_script(sandboxes, task, presentation, ScriptedTurn(text=right)),
                await run_script(sandboxes, task, presentation, late, ScriptedTurn(text=right)),
                await run_script(sandboxes, task, presentation, late, late, ScriptedTurn(text=right)),
            ]

    episodes = asyncio.run(run())
    assert [(summary(one)[0], one.usage.turns, one.end.outcome) for one in episodes] == [
        (True, 1, None),
        (True, 2, None),
        (False, 2, "limit"),
    ]
    prompt = episodes[0].environment.user_prompt
    assert "Write `add`" in prompt
    assert "/workspace" not in episodes[0].environment.system_prompt + prompt


def test_only_a_task_about_one_file_is_a_question() -> None:
    with pytest.raises(BadInput, match="one file"):
        present_as_question(subject())


def test_files_are_scored_as_the_last_turn_left_them(tmp_path: Path) -> None:
    """What a process does afterwards, in the background, has not happened."""
    task = split_subject()
    wait = "until [ -e /tmp/go ]; do sleep 0.01; done"
    later = f"({wait}; echo 'def add(a, b): return a + b' > add.py; touch /tmp/over) > /dev/null 2>&1 &"

    async def run() -> Any:
        async with TaskSandboxPool(tmp_path / "home") as sandboxes:
            environment = TaskEnvironment(sandboxes, task, present_as_work(task, tmp_path / "home"))
            workspace = await environment.reset()
            await workspace.shell(later)
            await workspace.snapshot()
            await workspace.shell("touch /tmp/go; until [ -e /tmp/over ]; do sleep 0.01; done")
            changed = await workspace.get("add.py")
            score = await environment.score(workspace)
            await workspace.close()
            return changed, score

    changed, score = asyncio.run(run())
    assert b"a + b" in changed
    assert not score.passed


def test_an_environment_forks_goes_back_and_makes_room_for_itself(tmp_path: Path) -> None:
    task = split_subject()

    async def run() -> None:
        async with TaskSandboxPool(tmp_path / "home", store_bytes=12 << 20) as sandboxes:
            workspace = await sandboxes.open_workspace(task)
            first = await workspace.snapshot()
            await workspace.put("add.py", RIGHT.encode())
            second = await workspace.snapshot()
            other = await workspace.fork(first)
            assert await other.get("add.py") != RIGHT.encode()
            await workspace.restore(first)
            assert workspace.last_snapshot == first
            await workspace.restore(second)
            for number in range(6):
                await workspace.shell(f"head -c 3000000 /dev/urandom > large; echo {number} > number")
                await workspace.snapshot()
            assert (await workspace.get("number")).strip() == b"5"
            await workspace.restore(first)
            await workspace.close()
            assert await other.get("add.py") == task.start.files["add.py"]
            await other.close()
            assert len(sandboxes._store.snapshots()) == 1

    asyncio.run(run())


def test_a_tree_that_does_not_fit_is_said_to_be_too_large(tmp_path: Path) -> None:
    async def run() -> None:
        async with TaskSandboxPool(tmp_path / "home", store_bytes=1 << 20) as sandboxes:
            workspace = await sandboxes.open_workspace(split_subject())
            await workspace.shell("head -c 3000000 /dev/urandom > large")
            with pytest.raises(StoreFull):
                await workspace.snapshot()
            await workspace.close()

    asyncio.run(run())


def test_only_what_it_opened_is_scored(tmp_path: Path) -> None:
    async def run() -> None:
        async with TaskSandboxPool(tmp_path / "home") as sandboxes:
            task = split_subject()
            with pytest.raises(BadInput, match="not opened by"):
                await TaskEnvironment(sandboxes, task, present_as_work(task, tmp_path / "home")).score(object())  # type: ignore[arg-type]

    asyncio.run(run())


def test_an_agent_cannot_ask_for_what_a_grader_is_told(tmp_path: Path) -> None:
    """Neither the task nor its tests can be reached from its sandbox, with whatever command."""
    from gametape.tasks.writer import write_task

    task = split_subject()
    directory = write_task(tmp_path / "task", task)
    asked = f"python3 -m gametape.cli.main verify {directory} --workspace . --grader --json; "
    asked += f"gametape verify {directory} --workspace . --grader; cat -- {directory}/tests/suite/tests/*.py; "
    asked += "find / -name '*held_out*' -not -path '/proc/*' -not -path '/usr/*' -not -path '/opt/*' 2>/dev/null"

    async def run() -> Episode:
        async with TaskSandboxPool(tmp_path / "home") as sandboxes:
            work = present_as_work(task, tmp_path / "home", max_turns=3)
            return await run_script(sandboxes, task, work, runs(asked), DONE)

    answers = "\n".join(step.model_dump_json() for step in asyncio.run(run()).steps if step.observation)
    assert "exit" in answers or "No such file" in answers
    for secret in ("test_large", "1100", "test_add_held_out"):
        assert secret not in answers
