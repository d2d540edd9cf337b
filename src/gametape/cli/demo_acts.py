"""The first three acts of the demo: tasks are mined, one is attempted twice, a tiny policy gets its warm start.

Each does what is not done yet, and returns what is worth telling as plain data.
"""

import asyncio
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gametape.agent.limits import Limits
from gametape.agent.place import Place
from gametape.agent.scripts import SCRIPTS
from gametape.agent.solving import Order, Solved
from gametape.agent.solving import solve as attempt
from gametape.cli.demo_stage import Stage
from gametape.cli.live_view import LiveView
from gametape.cli.mine import progress as mining_progress
from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.engines.naming import resolve
from gametape.sandbox.snapshots.sweep import remove_tree
from gametape.studio.run_files import RunFiles
from gametape.tasks.deletion.ledger import NAME as LEDGER
from gametape.tasks.deletion.miner import Request, mine
from gametape.tasks.deletion.project import Refused
from gametape.tasks.directory import load_task

ATTEMPTS = ("scripted:expert", "scripted:cheat")
_CANDIDATES = 3
_LIMITS = Limits(turns=12, turn_tokens=1 << 15)
"""A script writes whole files, and each of their bytes is a token."""


def mine_tasks(stage: Stage) -> dict[str, Any]:
    out = stage.out / "tasks"
    request = Request(
        source=stage.project,
        out=out,
        home=stage.home,
        limit=_CANDIDATES,
        seed=stage.seed,
        jobs=stage.told["cores"],
        resume=(out / LEDGER).exists(),
        python=stage.python,
    )
    try:
        with mining_progress() as watcher:
            summary = mine(request, watcher)
    except Refused as refusal:
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


def attempt_one(stage: Stage) -> list[dict[str, Any]]:
    """The first mined task, by one who knows the solution and by one who wants to be paid without. What an earlier call
    left half done is begun again: it takes seconds."""
    remove_tree(stage.out / "attempts")
    task = stage.out / "tasks" / stage.told["mined"]["names"][0]
    return [_attempt(stage, task, model) for model in ATTEMPTS]


def _attempt(stage: Stage, task: Path, model: str) -> dict[str, Any]:
    subject = load_task(task, stage.home, lambda _text: None)
    scripts = {name: (lambda script=script: script(subject)) for name, script in SCRIPTS.items()}
    place = Place(stage.out / "attempts" / model.partition(":")[2])
    order = Order(subject, resolve(model, stage.home, scripts=scripts), place, stage.home, _LIMITS)
    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        row = bar.add_task(f"{model} works")
        view = LiveView(_LIMITS.turns, console=console)

        def watch(step: Step) -> None:
            view.show(step)
            if any(call.function_name == "finish" for call in step.tool_calls or []):
                bar.update(row, description=f"{model} is done; the verifier looks at what it left")

        solved = asyncio.run(attempt(order, watch=watch))
    return _told(solved, model, subject.task.name)


def _told(solved: Solved, model: str, task: str) -> dict[str, Any]:
    verdict = solved.verdict
    if verdict is None:
        raise KeyboardInterrupt  # it was cancelled, which is the only way to have no verdict
    return {
        "model": model,
        "task": task,
        "turns": solved.turns,
        "passed": verdict.passed,
        "reward": verdict.reward,
        "checks": [check.model_dump(mode="json") for check in verdict.checks],
        "integrity": [flag.model_dump(mode="json") for flag in verdict.integrity],
        "tests": verdict.tests.model_dump(mode="json"),
        "trajectory": str(solved.trajectory),
    }


def warm_up(stage: Stage) -> dict[str, Any]:
    """A run that is content with whatever success it begins with: it makes the weights, scores them, and ends."""
    from gametape.cli.train_view import TrainView  # these two bring torch along
    from gametape.train.config_file import read_config
    from gametape.train.run_directory import RunDirectory
    from gametape.train.training import train

    directory = RunDirectory(stage.out / "warm")
    config = read_config(stage.config("rlvr"), [*stage.changes, "eval.stop_at=0.0"])
    with directory.held():
        if not directory.config.exists():
            directory.begin(config)
        with TrainView(config) as view:
            answer = asyncio.run(train(config, directory, stage.home, view.telling))
    score = RunFiles(directory.root).scores[0]
    wanted = ("success", "load_bearing", "ordinary", "hinted", "episodes")
    return {"run": answer["run"], "start": str(directory.start), **{name: score[name] for name in wanted}}
