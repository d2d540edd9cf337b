"""Compaction: what survives, how much smaller it gets, and that it ends."""

import asyncio
from pathlib import Path

from gametape.agent.compaction import MAX_COMPACTED_SHARE, SUMMARY_REQUEST
from gametape.agent.limits import RolloutLimits
from gametape.agent.progress_log import ProgressLog
from gametape.agent.recorded_steps import step_text
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.replay import last_checkpoint
from gametape.agent.rollout import Rollout
from gametape.core.step import Step
from gametape.core.token_segments import split_segments
from gametape.engines.scripted import scripted_model
from gametape.sandbox.backend import SandboxSpec
from tests.agent.bench import DONE, bench, runs, says
from tests.agent.test_rollout import trajectory
from tests.patience import HANG

WINDOW = 3_150
LOUD = "seq 1 500"
"""About 1,900 bytes, and a token for four of them."""


def compactions(rollout: Rollout) -> list[Step]:
    return [step for step in rollout.recorder.steps if step.source == "user" and step.gametape_extra.compacted]


def sizes(step: Step) -> tuple[int, int]:
    before, after = (int(word) for word in step.gametape_extra.events[0]["detail"].split() if word.isdigit())
    return before, after


def test_the_progress_summary_survives_and_the_context_shrinks(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [
            says("First I write it.", ("write", {"path": "answer.py", "content": "x = 41\n"})),
            runs("false"),
            *[runs(LOUD, f"Looking, number {number}.") for number in range(6)],
            runs("echo the-last-command", "Next I will fix the bound."),
            DONE,
        ]
        async with bench(tmp_path, model=scripted_model("scripted", turns, WINDOW)) as (harness, start):
            rollout = await harness.begin(start)
            assert (await rollout.run()).reason == "finished"
            (fresh,) = compactions(rollout)
            before, after = sizes(fresh)
            assert after <= MAX_COMPACTED_SHARE * before
            text = step_text(fresh)
            assert text.startswith("Do it.")
            for kept in (
                "answer.py",
                "Tried and failed",
                'shell {"command": "false"}',
                "do not run or write any of this again",
            ):
                assert kept in text
            assert trajectory(rollout).tokens_exact() is True

    asyncio.run(main())


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    """A scripted policy goes on with its next turn, so each side effect must be there once."""

    async def main() -> None:
        turns = [runs(f"echo {number} >> log; {LOUD}") for number in range(12)]
        async with bench(tmp_path, model=scripted_model("scripted", [*turns, DONE], WINDOW)) as (harness, start):
            rollout = await harness.begin(start)
            assert (await rollout.run()).reason == "finished"
            assert len(compactions(rollout)) >= 2
            assert (await rollout.workspace.get("log")).decode().split() == [str(number) for number in range(12)]

    asyncio.run(main())


def test_the_last_command_is_told_as_run(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [*[runs(LOUD) for _ in range(4)], runs(f"echo deploy-now; {LOUD}", "I deploy."), runs("true"), DONE]
        limits = RolloutLimits(turn_tokens=125)
        async with bench(tmp_path, model=scripted_model("s", turns, WINDOW), limits=limits) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.run()
            text = step_text(compactions(rollout)[-1])
            assert "which has been run and answered" in text
            assert "I deploy." in text

    asyncio.run(main())


def test_segments_of_a_compacted_rollout_are_masked_apart(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs(LOUD) for _ in range(10)]
        async with bench(tmp_path, model=scripted_model("s", [*turns, DONE], WINDOW)) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.run()
            found = split_segments(rollout.recorder.steps)
            assert len(found) == len(compactions(rollout)) + 1
            sampled = [step.metrics.completion_token_ids for step in rollout.recorder.steps if step.source == "agent"]
            chosen = [id for segment in found for id, bit in zip(segment.ids, segment.mask, strict=True) if bit]
            assert chosen == [id for ids in sampled for id in ids]

    asyncio.run(main())


def test_a_compacted_record_is_continued_where_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs(f"echo {number} >> log; {LOUD}") for number in range(7)]
        async with bench(tmp_path, model=scripted_model("s", [*turns, DONE], WINDOW)) as (harness, start):
            rollout = await harness.begin(start)
            while not compactions(rollout):
                await rollout.turn()
            steps = rollout.recorder.steps
            workspace = await harness.scheduler.open_snapshot(last_checkpoint(steps), SandboxSpec())
            other = await Rollout.resume(harness.config, workspace, MemoryRecorder(steps))
            assert other.conversation._next_prompt() == rollout.conversation._next_prompt()
            assert (await other.run()).reason == "finished"
            assert (await other.workspace.get("log")).decode().split() == [str(number) for number in range(7)]

    asyncio.run(main())


def test_a_summary_is_asked_for_when_dropping_output_is_not_enough(tmp_path: Path) -> None:
    async def main() -> None:
        said = "I think aloud, at length. " * 60
        turns = [runs("seq 1 20", said) for _ in range(5)]
        limits = RolloutLimits(turn_tokens=800)
        async with bench(tmp_path, model=scripted_model("s", [*turns, DONE], 3_500), limits=limits) as (
            harness,
            start,
        ):
            rollout = await harness.begin(start)
            await rollout.run()
            asked = [at for at, step in enumerate(rollout.recorder.steps) if step_text(step) == SUMMARY_REQUEST]
            assert asked, [step_text(step)[:50] for step in rollout.recorder.steps]
            summary = rollout.recorder.steps[asked[0] + 1]
            assert summary.gametape_extra.summary is True
            assert step_text(summary)[:30] in step_text(compactions(rollout)[0]).partition("## Done")[0]
            assert trajectory(rollout).tokens_exact() is True

    asyncio.run(main())


def test_a_window_that_cannot_be_made_smaller_ends_the_rollout(tmp_path: Path) -> None:
    async def main() -> None:
        turns = [runs("true", "x" * 900) for _ in range(50)]
        async with bench(tmp_path, model=scripted_model("s", turns, 1_300)) as (harness, start):
            rollout = await harness.begin(start)
            over = await asyncio.wait_for(rollout.run(), HANG)
            assert over.outcome == "limit"
            assert "context is full" in over.reason
            last = rollout.recorder.steps[-1]
            assert last.gametape_extra.events == [{"kind": "context_full", "detail": over.reason}]
            assert over.reason in step_text(last)
            assert trajectory(rollout).tokens_exact() is True

    asyncio.run(main())


def ran(number: int, command: str, answer: str, tool: str = "shell") -> Step:
    call = {"tool_call_id": f"call_{number}_0", "function_name": tool, "arguments": {"command": command}}
    result = {"source_call_id": f"call_{number}_0", "content": answer}
    return Step.model_validate(
        {
            "step_id": number,
            "source": "agent",
            "message": f"Step {number}.",
            "tool_calls": [call],
            "observation": {"results": [result]},
        }
    )


def test_what_failed_is_told_from_what_only_speaks_of_failing() -> None:
    progress = ProgressLog.of(
        [
            ran(1, "make", "no rule\n[exit code 2]"),
            ran(2, "cat notes", "the exit code is explained here\nexit code 0"),
            ran(3, "sleep 99", "[the command was ended: it ran longer than 60 seconds]\n[now in /workspace/a]"),
            ran(4, "pattern", "[exit code 1]", tool="search"),
            ran(5, "touch a", "[no output]"),
        ]
    )
    assert [line.split(":")[0] for line in progress.failed.entries] == ["turn 1", "turn 3"]
    assert [line.split(":")[0] for line in progress.done.entries] == ["turn 2", "turn 5"]
    assert progress.last_words == "Step 5."
