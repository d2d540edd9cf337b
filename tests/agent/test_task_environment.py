"""Tasks as assignments: played in real sandboxes side by side, judged by the verifier, and nothing left behind."""

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


def writes(content: str) -> ScriptedTurn:
    return says("I write it.", ("write", {"path": "add.py", "content": content}))


async def played(ground: TaskSandboxPool, made: LoadedTask, put: TaskPresentation, *turns: ScriptedTurn) -> Episode:
    assignment = TaskEnvironment(ground, made, put)
    model = with_code_block_calls(scripted_model("scripted", turns), "answer", "code")
    return await run_episode(assignment, rollout_config_for(assignment, model, Sampling(), RolloutLimits()))


def told(done: Episode) -> tuple[bool, bool, bool]:
    assert done.score is not None
    return done.score.passed, done.score.reward > 0, done.score.hacked


def test_many_attempts_at_once_are_judged_each_by_its_own_files(tmp_path: Path) -> None:
    made = split_subject()

    async def run() -> tuple[list[Episode], int]:
        async with TaskSandboxPool(tmp_path) as ground:
            work = present_as_work(made, tmp_path, max_turns=3)
            scripts: list[list[ScriptedTurn]] = [
                [runs("cd tests; ls"), writes(RIGHT), DONE],
                [runs(DEEP), writes("def add(a, b):\n    return 3\n"), DONE],
                [DONE],
                [runs("sleep 0.1"), runs("echo x > left.txt"), runs("cat left.txt"), writes(RIGHT), DONE],
            ]
            found = await asyncio.gather(*(played(ground, made, work, *turns) for turns in scripts))
            return found, len(ground._store.snapshots())

    found, left = asyncio.run(run())
    assert [told(one) for one in found][:3] == [(True, True, False), (False, False, False), (False, False, False)]
    assert [one.end.outcome for one in found] == [None, None, None, "limit"]
    assert told(found[3])[0] is False
    assert left == 1  # the starting tree


def test_a_question_is_answered_with_a_block_and_a_second_try(tmp_path: Path) -> None:
    made = subject(source_paths=["add.py"], mode="split", split=SplitSurface(modules=["add"]))
    right, late = f"Like this:\n```python\n{RIGHT}```\nDone.", ScriptedTurn(text="What do you mean?")

    async def run() -> list[Episode]:
        async with TaskSandboxPool(tmp_path) as ground:
            put = present_as_question(made)
            return [
                await played(ground, made, put, ScriptedTurn(text=right)),
                await played(ground, made, put, late, ScriptedTurn(text=right)),
                await played(ground, made, put, late, late, ScriptedTurn(text=right)),
            ]

    found = asyncio.run(run())
    assert [(told(one)[0], one.usage.turns, one.end.outcome) for one in found] == [
        (True, 1, None),
        (True, 2, None),
        (False, 2, "limit"),
    ]
    opening = found[0].environment.user_prompt
    assert "Write `add`" in opening
    assert "/workspace" not in found[0].environment.system_prompt + opening


def test_only_a_task_about_one_file_is_a_question() -> None:
    with pytest.raises(BadInput, match="one file"):
        present_as_question(subject())


def test_files_are_judged_as_the_last_turn_left_them(tmp_path: Path) -> None:
    """What a process does afterwards, in the background, has not happened."""
    made = split_subject()
    later = "(sleep 1; echo 'def add(a, b): return a + b' > add.py) > /dev/null 2>&1 &"

    async def run() -> Any:
        async with TaskSandboxPool(tmp_path) as ground:
            assignment = TaskEnvironment(ground, made, present_as_work(made, tmp_path))
            environment = await assignment.reset()
            await environment.shell(later)
            await environment.snapshot()
            await asyncio.sleep(1.5)
            changed = await environment.get("add.py")
            judged = await assignment.score(environment)
            await environment.close()
            return changed, judged

    changed, judged = asyncio.run(run())
    assert b"a + b" in changed
    assert not judged.passed


def test_an_environment_forks_goes_back_and_makes_room_for_itself(tmp_path: Path) -> None:
    made = split_subject()

    async def run() -> None:
        async with TaskSandboxPool(tmp_path, store_bytes=12 << 20) as ground:
            environment = await ground.open_workspace(made)
            first = await environment.snapshot()
            await environment.put("add.py", RIGHT.encode())
            second = await environment.snapshot()
            other = await environment.fork(first)
            assert await other.get("add.py") != RIGHT.encode()
            await environment.restore(first)
            assert environment.last_snapshot == first
            await environment.restore(second)
            for number in range(6):
                await environment.shell(f"head -c 3000000 /dev/urandom > large; echo {number} > number")
                await environment.snapshot()
            assert (await environment.get("number")).strip() == b"5"
            await environment.restore(first)
            await environment.close()
            assert await other.get("add.py") == made.start.files["add.py"]
            await other.close()
            assert len(ground._store.snapshots()) == 1

    asyncio.run(run())


def test_a_tree_that_does_not_fit_is_said_to_be_too_large(tmp_path: Path) -> None:
    async def run() -> None:
        async with TaskSandboxPool(tmp_path, store_bytes=1 << 20) as ground:
            environment = await ground.open_workspace(split_subject())
            await environment.shell("head -c 3000000 /dev/urandom > large")
            with pytest.raises(StoreFull):
                await environment.snapshot()
            await environment.close()

    asyncio.run(run())


def test_only_what_it_opened_is_judged(tmp_path: Path) -> None:
    async def run() -> None:
        async with TaskSandboxPool(tmp_path) as ground:
            made = split_subject()
            with pytest.raises(BadInput, match="not opened by"):
                await TaskEnvironment(ground, made, present_as_work(made, tmp_path)).score(object())  # type: ignore[arg-type]

    asyncio.run(run())
