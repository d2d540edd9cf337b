"""The loop: turns, going back, forking, and the four things that stay in step."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.agent.limits import RolloutLimits
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.replay import active_steps, last_checkpoint
from gametape.agent.rollout import Rollout
from gametape.core.errors import BadInput
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.sandbox.backend import SandboxSpec
from tests.agent.bench import DONE, bench, runs, says


def trajectory(rollout: Rollout) -> Trajectory:
    return Trajectory.model_validate(
        {
            "schema_version": ATIF_VERSION,
            "agent": {"name": "gametape", "version": "0"},
            "steps": [step.model_dump() for step in rollout.recorder.steps],
        }
    )


async def content(rollout: Rollout, path: str) -> str:
    return (await rollout.workspace.get(path)).decode()


def test_a_rollout_runs_until_it_is_finished_and_records_every_turn(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("echo one > a"), says("I look.", ("read", {"path": "a"})), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            over = await rollout.run()
            assert (over.outcome, over.reason) == (None, "finished")
            steps = rollout.recorder.steps
            assert [step.source for step in steps] == ["system", "user", "agent", "agent", "agent"]
            assert "one" in str(steps[3].observation.results[0].content)
            assert len({step.gametape_extra.checkpoint for step in steps[1:]}) == 4
            record = trajectory(rollout)
            assert record.tokens_exact() is True
            assert record.mask_ok() is True

    asyncio.run(main())


def test_going_back_undoes_files_shell_and_conversation_and_says_so_on_record(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("mkdir d && cd d && echo one > a"), runs("echo two > a; export X=1"), runs("pwd; cat a"), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            first = await rollout.turn()
            after_first = list(rollout.conversation._next_prompt())
            await rollout.turn()
            assert await content(rollout, "d/a") == "two\n"
            await rollout.rewind(first.step_id)
            assert await content(rollout, "d/a") == "one\n"
            assert rollout.conversation._next_prompt() == after_first
            assert rollout.state.directory == "/workspace/d"
            again = await rollout.turn()
            assert again.tool_calls[0].arguments == {"command": "echo two > a; export X=1"}
            assert (await rollout.turn()).observation.results[0].content == "/workspace/d\ntwo"
            assert trajectory(rollout).tokens_exact() is True
            line = active_steps(rollout.recorder.steps)
            assert [step.step_id for step in line] == [1, 2, 3, 6, 7]

    asyncio.run(main())


def test_a_fork_goes_its_own_way_and_trains_on_nothing_it_copied(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("echo one > a"), runs("echo two >> a"), runs("echo three >> a"), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            first = await rollout.turn()
            await rollout.turn()
            fork = await rollout.fork(first.step_id)
            await fork.turn()
            await fork.turn()
            assert await content(fork, "a") == "one\ntwo\nthree\n"
            assert await content(rollout, "a") == "one\ntwo\n"
            record = trajectory(fork)
            assert record.tokens_exact() is True
            assert record.mask_ok() is True
            copied = [step for step in record.steps if step.is_copied_context]
            assert [step.step_id for step in copied] == [1, 2, 3]
            assert not any(copied[-1].gametape_extra.loss_mask or [])
            assert fork.usage.turns == 3

    asyncio.run(main())


def test_fork_and_original_continue_identically(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("echo one > a"), runs("date +%s%N > b; cat a"), runs("ls"), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            first = await rollout.turn()
            fork = await rollout.fork(first.step_id)
            ours, theirs = await rollout.run(), await fork.run()
            assert ours.reason == theirs.reason
            for one, other in zip(rollout.recorder.steps[3:], fork.recorder.steps[3:], strict=True):
                assert one.tokens() == other.tokens()

    asyncio.run(main())


def test_a_record_is_continued_after_its_last_finished_turn(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("echo one > a"), runs("echo two >> a"), DONE]
        async with bench(tmp_path, turns) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.turn()
            await rollout.workspace.put("a", b"never finished")
            steps = rollout.recorder.steps
            workspace = await harness.scheduler.open_snapshot(last_checkpoint(steps), SandboxSpec())
            other = await Rollout.resume(harness.config, workspace, MemoryRecorder(steps))
            assert other.conversation._next_prompt() == rollout.conversation._next_prompt()
            assert (await other.run()).reason == "finished"
            assert await content(other, "a") == "one\ntwo\n"
            assert trajectory(other).tokens_exact() is True
            assert other.usage.turns == 3

    asyncio.run(main())


@pytest.mark.parametrize("step", [0, 1, 99])
def test_there_is_no_going_back_to_what_has_no_checkpoint(tmp_path: Path, step: int) -> None:
    async def main() -> None:
        async with bench(tmp_path, [DONE]) as (harness, start):
            rollout = await harness.begin(start)
            with pytest.raises(BadInput):
                await rollout.rewind(step)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RolloutLimits(turns=2), "2 turns"),
        (RolloutLimits(tokens=1000), "1000 tokens"),
        (RolloutLimits(all_tools_seconds=0.0001), "0.0001 seconds of tools"),
        (RolloutLimits(wall_seconds=0.0001), "0.0001 seconds"),
    ],
)
def test_limits_end_a_rollout_before_the_next_question(tmp_path: Path, limits: RolloutLimits, reason: str) -> None:
    async def main() -> None:
        async with bench(tmp_path, [runs("true")] * 40, limits=limits) as (harness, start):
            rollout = await harness.begin(start)
            over = await rollout.run()
            assert (over.outcome, over.reason) == ("limit", reason)
            assert len([step for step in rollout.recorder.steps if step.source == "agent"]) <= 3

    asyncio.run(main())


def test_what_a_command_did_to_a_forbidden_path_is_undone(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("p=kee; echo bad > ${p}p.txt; echo new > other"), runs("ls; cat keep.txt"), DONE]
        async with bench(tmp_path, turns, files={"keep.txt": "good\n"}) as (harness, start):
            harness.constraints = harness.constraints.model_copy(update={"unwritable": ["keep.txt"]})
            rollout = await harness.begin(start)
            step = await rollout.turn()
            assert [event["kind"] for event in step.gametape_extra.events] == ["constraint"]
            assert (await rollout.turn()).observation.results[0].content == "keep.txt\ngood"

    asyncio.run(main())


def test_checkpoints_take_bounded_room_and_the_first_and_last_stay(tmp_path: Path) -> None:
    most = 3_000_000

    async def main() -> None:
        turns = [runs(f"head -c 400000 /dev/urandom > big; echo {number}") for number in range(30)]
        async with bench(tmp_path, turns) as (harness, start):
            config = replace(
                harness.config, prune_checkpoints=lambda kept: harness.store.collect(kept, max_bytes=most // 2)
            )
            workspace = await harness.scheduler.open_snapshot(start, SandboxSpec())
            rollout = await Rollout.begin(config, workspace, MemoryRecorder(), "You are an agent.", "Do it.")
            for _ in range(24):
                last = await rollout.turn()
                assert harness.store.used_bytes() < most + 8 * 500_000
            await rollout.rewind(last.step_id)
            with pytest.raises(BadInput, match="no snapshot"):
                await rollout.rewind(4)
            await rollout.rewind(2)

    asyncio.run(main())
