"""The first three stages of the demo: mine tasks, attempt one of them twice, warm-start a tiny policy.

Each returns its results as plain data, which the demo stores and shows.
"""

import asyncio
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.limits import RolloutLimits
from gametape.agent.scripted_policies import SCRIPTED_POLICIES
from gametape.agent.solve import SolveRequest, SolveResult, solve
from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.demo.state import DemoState
from gametape.engines.model_names import resolve_model
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.studio.run_files import RunFiles
from gametape.tasks.loader import load_task
from gametape.tasks.mining.miner import MiningRequest, mine
from gametape.tasks.mining.mining_log import MINING_LOG_NAME as LEDGER
from gametape.tasks.project import ProjectRefused
from gametape.terminal.mining_view import mining_progress
from gametape.terminal.rollout_view import LiveView

ATTEMPTS = ("scripted:expert", "scripted:cheat")
_CANDIDATES = 3
_LIMITS = RolloutLimits(turns=12, turn_tokens=1 << 15)
"""A script writes whole files, and each byte is a token."""


def mine_tasks(state: DemoState) -> dict[str, Any]:
    out = state.out / "tasks"
    request = MiningRequest(
        source=state.project,
        out=out,
        home=state.home,
        limit=_CANDIDATES,
        seed=state.seed,
        jobs=state.data["cores"],
        resume=(out / LEDGER).exists(),
        python=state.python,
    )
    try:
        with mining_progress() as watcher:
            summary = mine(request, watcher)
    except ProjectRefused as refusal:
        raise BadInput(f"the example project cannot be mined here ({refusal.reason}): {refusal}") from None
    names = [str(record["task"]) for record in summary.valid]
    if not names:
        raise BadInput(f"none of the example project's candidates became a task: {summary.rejected}")
    return {
        "project": summary.project,
        "tests": summary.suite["tests"],
        "candidates": len(summary.records),
        "valid": len(names),
        "rejected": summary.rejected,
        "names": names,
        "tasks": [str(out / name) for name in names],
        "seconds": round(summary.seconds, 1),
    }


def attempt_task(state: DemoState) -> list[dict[str, Any]]:
    """Attempt the first mined task with a script that solves it and one that cheats. What an interrupted call left is
    deleted and done again: it takes seconds."""
    remove_tree(state.out / "attempts")
    task = state.out / "tasks" / state.data["mined"]["names"][0]
    return [_attempt(state, task, model) for model in ATTEMPTS]


def _attempt(state: DemoState, path: Path, model: str) -> dict[str, Any]:
    task = load_task(path, state.home, lambda _text: None)
    scripts = {name: (lambda script=script: script(task)) for name, script in SCRIPTED_POLICIES.items()}
    directory = AttemptDirectory(state.out / "attempts" / model.partition(":")[2])
    request = SolveRequest(task, resolve_model(model, state.home, scripts=scripts), directory, state.home, _LIMITS)
    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        row = bar.add_task(f"{model} works")
        view = LiveView(_LIMITS.turns, console=console)

        def on_step(step: Step) -> None:
            view.show(step)
            if any(call.function_name == "finish" for call in step.tool_calls or []):
                bar.update(row, description=f"{model} has finished; the verifier runs")

        result = asyncio.run(solve(request, on_step=on_step))
    return _attempt_to_dict(result, model, task.task.name)


def _attempt_to_dict(result: SolveResult, model: str, task: str) -> dict[str, Any]:
    verdict = result.verdict
    if verdict is None:
        raise KeyboardInterrupt  # only a cancelled attempt has no verdict
    return {
        "model": model,
        "task": task,
        "turns": result.turns,
        "passed": verdict.passed,
        "reward": verdict.reward,
        "checks": [check.model_dump(mode="json") for check in verdict.checks],
        "integrity": [flag.model_dump(mode="json") for flag in verdict.integrity],
        "tests": verdict.tests.model_dump(mode="json"),
        "trajectory": str(result.trajectory),
    }


def warm_start(state: DemoState) -> dict[str, Any]:
    """A training run that stops at any success rate: it makes the first weights, scores them, and ends."""
    from gametape.terminal.training_view import TrainView  # these import torch
    from gametape.train.config_file import read_config
    from gametape.train.run_directory import RunDirectory
    from gametape.train.training import train

    directory = RunDirectory(state.out / "warm")
    config = read_config(state.config("rlvr"), [*state.changes, "eval.stop_at=0.0"])
    with directory.lock():
        if not directory.config.exists():
            directory.create(config)
        with TrainView(config) as view:
            answer = asyncio.run(train(config, directory, state.home, view.callbacks))
    score = RunFiles(directory.root).scores[0]
    wanted = ("success", "load_bearing", "ordinary", "hinted", "episodes")
    return {"run": answer["run"], "start": str(directory.start), **{name: score[name] for name in wanted}}
