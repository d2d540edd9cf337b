"""What an agent is told of its budgets, and when."""

import asyncio
from dataclasses import replace
from pathlib import Path

from gametape.agent.budget import ToldBudget
from gametape.agent.limits import RolloutLimits, RolloutUsage
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.replay import last_checkpoint
from gametape.agent.rollout import Rollout
from gametape.sandbox.backend import SandboxSpec
from tests.agent.bench import bench, runs
from tests.agent.test_rollout import trajectory

LIMITS = RolloutLimits(turns=20, tokens=40_000, cost_usd=2.0, wall_seconds=None)


def _told(budget: ToldBudget, turns: int) -> list[int]:
    """The turns after which something is told, where a turn uses only turns."""
    told, before = [], budget.items(RolloutUsage(turns=budget.turns_before))
    for turn in range(1, turns + 1):
        after = budget.items(RolloutUsage(turns=budget.turns_before + turn))
        if budget.notice(before, after):
            told.append(turn)
        before = after
    return told


def test_all_budgets_are_told_first_and_what_is_left_at_each_quarter_and_near_the_end() -> None:
    budget = ToldBudget(LIMITS)
    assert budget.opening() == "Your budget: 20 turns, 40,000 tokens and $2.00."
    assert _told(budget, 20) == [5, 10, 15, 18, 19]
    assert _told(ToldBudget(LIMITS.model_copy(update={"turns": 27}), turns_before=7), 20) == [5, 10, 15, 18, 19]


def test_whichever_budget_runs_low_is_told_with_all_others() -> None:
    budget = ToldBudget(LIMITS)
    before = budget.items(RolloutUsage(turns=1, prompt_tokens=9_000))
    after = budget.items(RolloutUsage(turns=2, prompt_tokens=30_500, cost_usd=0.25))
    assert budget.notice(before, after) == "[Budget left: 18 of 20 turns, 9,500 of 40,000 tokens and $1.75 of $2.00.]"
    last = budget.items(RolloutUsage(turns=19, prompt_tokens=30_500))
    assert str(budget.notice(last, last)).endswith("One turn is left.]")


def test_a_deadline_is_told_in_seconds() -> None:
    budget = ToldBudget(RolloutLimits(turns=100, wall_seconds=None), deadline=1_000.0, began=600.0)
    before, after = (budget.items(RolloutUsage(), now) for now in (650.0, 800.0))
    assert budget.notice(before, after) == "[Budget left: 100 of 100 turns and 200 of 400 seconds.]"


def test_it_is_said_with_the_results_on_record_and_the_same_after_a_restart(tmp_path: Path) -> None:
    limits = RolloutLimits(turns=4, wall_seconds=None)

    async def main() -> None:
        async with bench(tmp_path, [runs("echo here")] * 9, limits=limits) as (harness, start):
            config = replace(harness.config, told_budget=ToldBudget(limits))
            workspace = await harness.scheduler.open_snapshot(start, SandboxSpec())
            rollout = await Rollout.begin(config, workspace, MemoryRecorder(), "You are an agent.", "Do it.")
            step = await rollout.turn()
            contents = [result.content for result in step.observation.results]
            assert contents == ["here", "[Budget left: 3 of 4 turns.]"]
            steps = list(rollout.recorder.steps)
            again = await harness.scheduler.open_snapshot(last_checkpoint(steps), SandboxSpec())
            other = await Rollout.resume(config, again, MemoryRecorder(steps))
            assert other.conversation._next_prompt() == rollout.conversation._next_prompt()
            for each in (rollout, other):
                assert (await each.run()).reason == "4 turns"
                assert trajectory(each).tokens_exact() is True
            assert "here" in str(rollout.recorder.steps[-1].observation.results)
            assert "Budget left" not in str(rollout.recorder.steps[-1].observation.results), "there is no further turn"

    asyncio.run(main())
