"""The oracle: whatever the size of the solution, each of its turns is one that a model may take."""

import asyncio
import random
from pathlib import Path

from gametape.agent.limits import RolloutLimits
from gametape.agent.scripted_policies import expert
from gametape.core.task import Task, TaskTests
from gametape.engines.scripted import BYTES_PER_TOKEN
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from tests.agent.bench import bench


def _task(path: str, content: str) -> LoadedTask:
    tests = TaskTests(fail_to_pass=["tests/test_a.py::test_a"], pass_to_pass=[])
    task = Task(name="large", mode="shared", instruction="", source_paths=[path], test_paths=["tests"], tests=tests)
    start = SourceTree({path: b""})
    return LoadedTask(task, start, SourceTree(), reference=SourceTree({path: content.encode()}))


def test_a_solution_of_any_size_is_written_in_turns_that_are_not_cut_off(tmp_path: Path) -> None:
    dice = random.Random(3)
    content = "".join(dice.choice("ab'\"$`\\ \n\t%é€!") for _ in range(150_000)) + "end"
    turns = expert(_task("a b/it's.py", content))
    most = RolloutLimits().turn_tokens * BYTES_PER_TOKEN
    assert max(len(turn.to_text().encode()) for turn in turns) < most < len(content.encode())

    async def main() -> None:
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            assert (await rollout.run()).reason == "finished"
            assert rollout.usage.cut_off == 0
            assert (await rollout.workspace.get("a b/it's.py")).decode() == content

    asyncio.run(main())
