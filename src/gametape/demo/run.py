"""The demo from its first stage to its report. A stage that an earlier call has finished is only shown."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from gametape.core.errors import BadInput, MissingDependency
from gametape.demo import stages, view
from gametape.demo.arms import train_arms
from gametape.demo.state import DemoState
from gametape.record.errors import printable_path
from gametape.record.installation import install_extra
from gametape.studio.comparison import ArmComparison
from gametape.studio.report import write_report
from gametape.studio.run_files import RunFiles
from gametape.studio.run_place import RunPlace
from gametape.studio.sections.demo import DEMO_ARMS
from gametape.studio.sections.training import compare_runs, run_labels
from gametape.studio.web.export import write_export

_Stage = tuple[str, str, Callable[[DemoState], Any], Callable[[Console, Any], None]]
_STAGES: tuple[_Stage, ...] = (
    ("mined", "Mine tasks from examples/demo-project", stages.mine_tasks, view.show_mined),
    ("rollouts", "Attempt one in the sandbox, and verify", stages.attempt_task, view.show_attempts),
    ("warm", "Warm-start a tiny policy", stages.warm_start, view.show_warm),
    ("arms", "Train RLVR and RLVR+TTF from the same weights, with the same budget", train_arms, lambda *_: None),
)
"""The key in demo.json, the title, what runs the stage and what shows its result."""


def run_demo(state: DemoState, console: Console) -> dict[str, Any]:
    """Run the stages that are missing, write the report, and return what `gametape demo --json` prints."""
    try:
        import torch  # noqa: F401 - better refused now than after the first stages
    except ImportError as error:
        raise MissingDependency(f"training needs torch and transformers: {install_extra('train')} ({error})") from error
    for number, (name, title, run_stage, show) in enumerate(_STAGES, start=1):
        console.print(f"\n[bold]{number}. {title}[/]")
        if name not in state.data:
            began = time.monotonic()
            result = run_stage(state)
            state.keep(**{name: result}, seconds=round(state.data["seconds"] + time.monotonic() - began, 1))
        show(console, state.data[name])
    runs = [RunFiles(state.out / arm) for arm in DEMO_ARMS]
    for run in runs:
        if not run.scores:
            raise BadInput(
                f"{printable_path(run.root)}: the run has no held-out score in metrics.jsonl; begin another demo"
            )
    comparison = compare_runs(runs, run_labels(runs))
    assert comparison  # both runs have a score
    view.show_arms(console, runs, comparison)
    report = write_report([RunPlace("demo", state.out)], state.out / "report.html").path
    console.print(f"{state.data['seconds']:.0f} s in all; the report, with plots and the tape of one rollout:")
    console.print(str(report), markup=False)
    studio = write_export(state.out / "rlvr_ttf", state.out / "studio.html").path
    console.print(f"the run with hints, to look through token by token: {studio}", markup=False)
    return _answer(state, report, studio, comparison)


def _answer(state: DemoState, report: Path, studio: Path, comparison: ArmComparison) -> dict[str, Any]:
    data = state.data
    return {
        "report": str(report),
        "studio": str(studio),
        "out": str(state.out),
        "seed": state.seed,
        "quick": data["quick"],
        "arms": data["arms"],
        "gained": comparison.gained,
        "gain": {
            "points": round(100 * comparison.gain, 2),
            "low": round(100 * comparison.low, 2),
            "high": round(100 * comparison.high, 2),
            "said": comparison.sentence,
        },
        "load_bearing": {"unhinted": data["warm"]["load_bearing"], "hinted": data["warm"]["hinted"]},
        "mined": data["mined"],
        "rollouts": [
            {name: rollout[name] for name in ("model", "task", "passed", "reward", "turns", "trajectory")}
            for rollout in data["rollouts"]
        ],
        "told_apart": [rollout["passed"] for rollout in data["rollouts"]] == [True, False],
        "seconds": data["seconds"],
    }
