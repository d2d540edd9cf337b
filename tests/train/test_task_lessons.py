"""Demonstrations in sandboxes: what faults are planted, that the verifier sees them, and that no request names one."""

import asyncio
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gametape.agent.task_environment import TaskEnvironment, TaskSandboxPool
from gametape.core.config import WarmStartConfig
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.evals.suite import item_from_task
from gametape.tasks.katas.chains import named_chains
from gametape.train.task_lessons import FAULTS, draw_faults, plan_work, task_lesson

CHAIN = named_chains("all:3:2", seed=1)[0]


def calls_of(*faults: Any) -> list[tuple[str, str]]:
    return [(turn.call.name, turn.fault or "") for turn in plan_work(CHAIN, faults)]


def test_without_a_fault_every_file_is_written_and_tested() -> None:
    assert calls_of(None, None, None) == [("write", ""), ("shell", "")] * 3 + [("finish", "")]


def test_each_fault_is_what_it_is_called() -> None:
    assert calls_of("unknown tool", "wrong argument", "untested") == [
        ("run_tests", "unknown tool"),
        ("write", ""),
        ("shell", ""),
        ("write", "wrong argument"),
        ("write", ""),
        ("shell", ""),
        ("write", ""),
        ("finish", ""),
    ]
    assert calls_of("wrong file", "early finish", None) == [
        ("write", "wrong file"),
        ("shell", ""),
        ("write", ""),
        ("shell", ""),
        ("write", ""),
        ("shell", ""),
        ("finish", "early finish"),
    ]
    assert calls_of(None, None, "early finish")[-1] == ("finish", "")


def test_faults_are_drawn_as_often_as_is_asked() -> None:
    drawn = [fault for seed in range(40) for fault in draw_faults(CHAIN, 0.5, Random(seed))]
    assert {fault for fault in drawn if fault} == set(FAULTS)
    assert 0.35 < sum(fault is not None for fault in drawn) / len(drawn) < 0.65
    assert draw_faults(CHAIN, 0.0, Random(1)) == [None, None, None]


def test_chains_ask_for_functions_of_different_names(tmp_path: Path) -> None:
    for task in named_chains("all:4:5", seed=2):
        assert len(set(task.task.source_paths)) == 4
        assert all(path in task.task.instruction for path in task.task.source_paths)
    item = item_from_task(CHAIN, cast(TaskSandboxPool, SimpleNamespace(profile="full")), tmp_path)
    assert {"write", "shell", "finish"} <= {tool.name for tool in item.environment.tools()}


@pytest.mark.slow
def test_the_verifier_passes_what_recovers_and_fails_what_stops_early(tmp_path: Path) -> None:
    async def outcomes() -> list[tuple[bool, bool]]:
        found = []
        async with TaskSandboxPool(tmp_path, profile="train") as pool:
            environment = item_from_task(CHAIN, pool, tmp_path).environment
            assert isinstance(environment, TaskEnvironment)
            for seed in range(6):
                warm = WarmStartConfig(fault_share=0.9, hint_share=1.0)
                lesson = await task_lesson(environment, byte_chat_format(), warm, Random(seed))
                score = lesson.episode.score
                assert score is not None
                early = "early finish" in draw_faults(CHAIN, 0.9, Random(seed))[:-1]
                found.append((score.passed, early))
                assert len(lesson.segments) == 1 + 2
        return found

    found = asyncio.run(outcomes())
    assert all(passed != early for passed, early in found)
    assert {early for _, early in found} == {True, False}
