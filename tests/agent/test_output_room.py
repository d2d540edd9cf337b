"""How much of a tool's output reaches a model, by its window."""

import asyncio
from pathlib import Path

import pytest

from gametape.agent.agent_state import AgentState
from gametape.agent.limits import RolloutLimits
from gametape.agent.output_room import OutputRoom
from gametape.agent.rollout import RolloutConfig
from gametape.agent.task_setup import limits_for_task
from gametape.agent.tools.shell import ShellTool
from gametape.core.step import Step
from gametape.core.task import Task, TaskLimits, TaskTests
from gametape.engines.scripted import scripted_model
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from tests.agent.bench import DONE, bench, runs, says


@pytest.mark.parametrize("window", [1_000, 2_048, 8_192, 32_768, 131_072, 1_000_000])
def test_a_small_model_keeps_room_to_read_and_a_large_one_gets_what_it_can_take(window: int) -> None:
    room = OutputRoom.for_window(window)
    config = RolloutConfig(scripted_model("s", [], window), lambda _state: ())
    assert config.turn_tokens <= window // 4, "three quarters are left for the prompt"
    assert config.max_prompt_tokens >= 3 * window // 4
    assert room.call <= max(window, 30_000)
    assert room.turn / 4 <= window / 2
    if window >= 131_072:
        assert (room.call, room.read, config.turn_tokens) == (
            30_000,
            65_536,
            16_384,
        )
    if window == 8_192:
        assert (room.call, room.read, config.turn_tokens) == (8_000, 4_096, 2_048)


def test_a_limit_that_was_given_holds() -> None:
    assert OutputRoom.for_window(1 << 20, 700).call == 700
    limits = RolloutLimits(context_tokens=8_192)
    assert RolloutConfig(scripted_model("s", []), lambda _state: (), limits=limits).output_room.call == 8_000


def test_many_calls_of_one_turn_share_half_of_the_window() -> None:
    room = OutputRoom.for_window(8_192)
    assert room.for_call(0, 1, False) == 8_000
    assert room.for_call(0, 8, False) == room.turn // 8
    assert room.for_call(room.turn, 1, False) == 500, "every call is answered"


def observed(step: Step) -> list[str]:
    assert step.observation is not None
    return [str(result.content) for result in step.observation.results]


def test_the_end_of_a_long_output_survives_the_cut(tmp_path: Path) -> None:
    turns = [runs("seq 1 100000; echo E: it broke >&2; (exit 3)"), DONE]

    async def main(window: int) -> str:
        async with bench(tmp_path / str(window), model=scripted_model("s", turns, window)) as (harness, start):
            (content,) = observed(await (await harness.begin(start)).turn())
            return content

    for window, most in ((8_192, 8_000), (200_000, 30_000)):
        (tmp_path / str(window)).mkdir()
        content = asyncio.run(main(window))
        assert most * 0.95 <= len(content) <= most
        assert content.startswith("1\n2\n")
        assert content.endswith("E: it broke\n[exit code 3]")
        assert "characters" in content


def test_a_file_is_read_whole_where_the_window_allows_it(tmp_path: Path) -> None:
    source = "".join(f"line {number} of a file\n" for number in range(1, 1_501))
    read = says("I read it.", ("read", {"path": "a.py"}))

    async def main(window: int) -> str:
        place = tmp_path / str(window)
        place.mkdir()
        model = scripted_model("s", [read, DONE], window)
        async with bench(place, model=model, files={"a.py": source}) as (harness, start):
            (content,) = observed(await (await harness.begin(start)).turn())
            return content

    whole = asyncio.run(main(200_000))
    assert whole.startswith("a.py, lines 1-1,500 of 1,500\n   1  line 1 of a file\n")
    assert whole.endswith("1500  line 1500 of a file")
    part = asyncio.run(main(8_192))
    assert len(part) <= 4_096
    last = int(part.splitlines()[-2].split()[0])
    assert part.endswith(f"[{1500 - last:,} more lines; go on with line={last + 1}]")


def test_calls_of_one_turn_are_answered_in_their_order_also_where_one_fails(tmp_path: Path) -> None:
    calls = (
        ("read", {"path": "a.txt"}),
        ("read", {"path": "missing.txt"}),
        ("fly", {}),
        ("search", {"pattern": "("}),
        ("shell", {"command": "exit 7"}),
        ("read", {"path": "b.txt"}),
        *[("read", {"path": "a.txt"})] * 6,
    )
    files = {"a.txt": "the first\n", "b.txt": "the second\n"}

    async def main() -> None:
        async with bench(tmp_path, [says("I look.", *calls), DONE], files=files) as (harness, start):
            rollout = await harness.begin(start)
            step = await rollout.turn()
            assert [result.source_call_id for result in step.observation.results] == [
                call.tool_call_id for call in step.tool_calls
            ]
            first, missing, unknown, broken, failed, second, *others = observed(step)
            assert "the first" in first
            assert "there is no missing.txt" in missing
            assert "There is no tool" in unknown
            assert "not a regular expression" in broken
            assert "[exit code 7]" in failed
            assert "the second" in second
            assert len(others) == 6
            assert (await rollout.run()).reason == "finished"

    asyncio.run(main())


@pytest.mark.parametrize(("verifier", "default", "most"), [(None, 120.0, 600.0), (1800.0, 1800.0, 1800.0)])
def test_a_task_that_needs_longer_has_longer(verifier: float | None, default: float, most: float) -> None:
    tests = TaskTests(fail_to_pass=["tests/test_a.py::test_a"], pass_to_pass=[])
    task = Task(
        name="slow",
        mode="shared",
        instruction="",
        source_paths=["a.py"],
        test_paths=["tests"],
        tests=tests,
        limits=TaskLimits(verifier_seconds=verifier),
    )
    limits = limits_for_task(RolloutLimits(), LoadedTask(task, SourceTree(), SourceTree()))
    assert limits.tool_seconds == most
    timeout = ShellTool(AgentState(), limits.tool_seconds).parameters["properties"]["timeout"]
    assert timeout["maximum"] == most
    assert f"{default:g} unless given" in timeout["description"]
