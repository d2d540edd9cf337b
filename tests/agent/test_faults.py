"""The fault matrix: whatever a model, a tool, a sandbox or a server can do wrong, for real, and what comes of it."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gametape.agent.limits import RolloutLimits
from gametape.agent.rollout import Rollout
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace
from gametape.core.step import Step
from gametape.engines.scripted import ScriptedTurn
from tests.agent.bench import DONE, bench, runs, says
from tests.agent.test_rollout import trajectory
from tests.patience import HANG

CRASHING_JSON = '```tool\n{"name": "shell", "arguments": {"command": "ls"\n```'


class Crash:
    """A tool of ours with a bug in it."""

    name = "crash"
    definition: ClassVar = {"name": "crash", "description": "", "parameters": {"type": "object", "properties": {}}}

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        raise ZeroDivisionError("a bug")


class Forever:
    name = "forever"
    definition: ClassVar = {"name": "forever", "description": "", "parameters": {"type": "object", "properties": {}}}

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        await asyncio.sleep(3600)
        raise AssertionError


SAID: dict[str, tuple[ScriptedTurn, list[str], str]] = {
    "malformed JSON": (ScriptedTurn(text=CRASHING_JSON), ["malformed_call"], "not valid JSON"),
    "unclosed fence": (ScriptedTurn(text='```tool\n{"name": "x"}'), ["malformed_call"], "does not end"),
    "unknown tool": (says("", ("fly", {})), ["unknown_tool"], "There is no tool 'fly'. The tools are: shell, read"),
    "wrong argument": (says("", ("read", {"file": "a"})), ["wrong_arguments"], "unknown argument 'file'"),
    "wrong type": (says("", ("read", {"path": 3})), ["wrong_arguments"], "path"),
    "missing argument": (says("", ("shell", {})), ["wrong_arguments"], "'command' is missing"),
    "empty turn": (ScriptedTurn(), ["no_call"], "called no tool"),
    "only text": (ScriptedTurn(text="Let me think."), ["no_call"], "called no tool"),
    "endless turn": (ScriptedTurn(text="and " * 2000), ["cut_off"], "cut off after 500 tokens"),
    "cut in a call": (
        says("", ("write", {"path": "a", "content": "x = 1\n" * 2000})),
        ["cut_off"],
        "No call in it was",
    ),
    "tool crash": (says("", ("crash", {})), ["tool_crash"], "ZeroDivisionError"),
    "tool that hangs": (says("", ("forever", {})), ["tool_timeout"], "did not end within"),
    "too many calls": (
        says("", *[("shell", {"command": "echo x >> n"})] * 9),
        ["too_many_calls"],
        "at most 8 calls in one turn",
    ),
}


def observed(step: Step) -> str:
    return "\n".join(str(result.content) for result in step.observation.results)


@pytest.mark.parametrize("fault", SAID)
def test_what_a_model_can_say_is_answered_recorded_and_survived(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gametape.agent.tool_router._GRACE", 0.0)
    turn, kinds, told = SAID[fault]
    seconds = 4.0 if fault == "tool that hangs" else HANG
    limits = RolloutLimits(tool_seconds=seconds, turn_tokens=500, calls_per_turn=8)

    async def main() -> None:
        turns = [turn, runs("echo still here"), DONE]
        async with bench(tmp_path, turns, limits=limits, more=[Crash(), Forever()]) as (harness, start):
            rollout = await harness.begin(start)
            step = await rollout.turn()
            assert [event["kind"] for event in step.gametape_extra.events] == kinds
            assert told in observed(step)
            assert "still here" in observed(await rollout.turn())
            assert (await rollout.run()).reason == "finished"
            assert trajectory(rollout).tokens_exact() is True

    asyncio.run(main())


def test_calls_of_one_turn_run_in_order_and_stop_at_finish(tmp_path: Path) -> None:
    async def main() -> None:
        finish = ("finish", {"summary": "done", "confidence": 1.0})
        calls = [("shell", {"command": "echo a > log"}), ("shell", {"command": "cat log"}), finish]
        async with bench(tmp_path, [says("", *calls, ("shell", {"command": "rm log"}))]) as (harness, start):
            rollout = await harness.begin(start)
            assert (await rollout.run()).reason == "finished"
            step = rollout.recorder.steps[-1]
            assert [result.source_call_id for result in step.observation.results] == [
                call.tool_call_id for call in step.tool_calls
            ]
            assert "Not run" in observed(step)
            assert await rollout.workspace.get("log") == b"a\n"

    asyncio.run(main())


def test_turns_without_a_usable_call_end_the_rollout_in_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        limits = RolloutLimits(useless_turns=3)
        async with bench(tmp_path, [ScriptedTurn(text="Hm.")] * 20, limits=limits) as (harness, start):
            over = await (await harness.begin(start)).run()
            assert (over.outcome, over.reason.split()[0]) == ("limit", "3")

    asyncio.run(main())


def killed_by(rollout: Rollout, kill: Callable[[int], None]) -> None:
    """End the process that holds the sandbox open."""
    kill(rollout.workspace._session._processes.anchor)


def test_a_sandbox_that_dies_is_replaced_and_no_finished_turn_is_lost(tmp_path: Path) -> None:
    """Its death is seen in the call that runs, when its tree is saved, or in the next call, whichever comes first."""

    async def main() -> None:
        turns = [runs("echo kept > a"), runs("touch now; sleep 30"), runs("cat a"), runs("cat a"), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.turn()

            async def kill_soon() -> None:
                while True:
                    await asyncio.sleep(0.02)
                    try:
                        await rollout.workspace.get("now")
                    except BadInput:
                        continue
                    break
                killed_by(rollout, lambda pid: os.kill(pid, signal.SIGKILL))

            killing = asyncio.ensure_future(kill_soon())
            steps = [await asyncio.wait_for(rollout.turn(), HANG), await rollout.turn()]
            await killing
            dead = next(step for step in steps if step.gametape_extra.events)
            assert {event["kind"] for event in dead.gametape_extra.events} == {"sandbox_death"}, (
                dead.gametape_extra.events
            )
            assert "The workspace is as it was before this turn" in observed(dead)
            assert observed(await rollout.turn()) == "kept"
            assert (await rollout.run()).reason == "finished"

    asyncio.run(main())


def test_a_sandbox_that_keeps_dying_ends_the_rollout(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, [runs("sleep 30")] * 9, limits=RolloutLimits(sandbox_deaths=1)) as (harness, start):
            rollout = await harness.begin(start)

            async def kill_often() -> None:
                while True:
                    await asyncio.sleep(0.2)
                    try:
                        killed_by(rollout, lambda pid: os.kill(pid, signal.SIGKILL))
                    except (ProcessLookupError, TypeError):
                        continue

            killing = asyncio.ensure_future(kill_often())
            over = await asyncio.wait_for(rollout.run(), HANG)
            killing.cancel()
            assert over.outcome == "error"
            assert "sandbox died" in over.reason

    asyncio.run(main())
