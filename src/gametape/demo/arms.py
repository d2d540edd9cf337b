"""The fourth act: RLVR and RLVR+TTF from the same weights with the same budget, each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gametape.core.errors import BadInput, GametapeError, MissingDependency
from gametape.demo.state import DemoState
from gametape.record.errors import printable_path
from gametape.studio.report import ARM_LABELS
from gametape.studio.run_files import RunFiles

ARMS = ("rlvr", "rlvr_ttf")
_LOOK_EVERY = 0.5
_PATIENCE = 60.0
"""Seconds that a run has to end in order when it is told to."""
_ARM = (
    "import sys; from gametape.sandbox.linux import die_with_parent; die_with_parent(int(sys.argv.pop(1)))\n"
    "from gametape.cli.main import main; main()"
)
"""`gametape`, for as long as the demo lives: one that outlived a kill -9 would keep the run from being taken up."""
_SAID = "gametape: "


class ArmFailed(GametapeError):
    """A run ended without an answer; its log says why, and its exit code what kind of trouble it is."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code if code in (BadInput.exit_code, MissingDependency.exit_code) else 1


def train_arms(state: DemoState) -> dict[str, Any]:
    """What each `gametape train --json` answered. Whatever ends this early ends both in order."""
    with ExitStack() as running, _bars() as bar:
        arms = {arm: running.enter_context(_training(state, arm)) for arm in ARMS}
        rows = {arm: bar.add_task(ARM_LABELS[arm], total=None, more="") for arm in ARMS}
        answers: dict[str, Any] = {}
        while len(answers) < len(arms):
            time.sleep(_LOOK_EVERY)
            ended = [arm for arm, process in arms.items() if arm not in answers and process.poll() is not None]
            answers |= {arm: _answer(state, arm, arms[arm]) for arm in ended}
            _look(state, bar, rows)
        return {arm: answers[arm] for arm in ARMS}


@contextmanager
def _training(stage: DemoState, arm: str) -> "Iterator[subprocess.Popen[bytes]]":
    """In a session of its own, so that one Ctrl-C reaches it once, from here."""
    run = stage.out / arm
    if (run / "config.toml").exists():
        words = ["--resume", str(run)]
    else:
        changes = (*stage.changes, f"model={stage.start}")
        words = [str(stage.config(arm)), "--out", str(run)]
        words += [word for change in changes for word in ("--set", change)]
    demo = str(os.getpid())
    command = [sys.executable, "-c", _ARM, demo, "train", *words, "--home", str(stage.home), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with _log(stage, arm).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _answer(stage: DemoState, arm: str, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """Its last line. A run that had to stop has one too, and it says what stopped it."""
    assert process.stdout
    said = process.stdout.read().decode().splitlines()
    if not said:
        log = _log(stage, arm).read_text(errors="replace").splitlines()
        told = [line.removeprefix(_SAID) for line in log if line.startswith(_SAID)]
        last = told[-1] if told else f"exit code {process.returncode}"
        raise ArmFailed(f"{arm}: {last} (all it said: {printable_path(_log(stage, arm))})", process.returncode)
    answer: dict[str, Any] = json.loads(said[-1])
    return answer


def _look(stage: DemoState, bar: Progress, rows: dict[str, Any]) -> None:
    """How much of its budget of operations each has used, from its log."""
    for arm, row in rows.items():
        run = RunFiles(stage.out / arm)
        if not run.metrics:
            continue
        used, budget = (line["flops"] for line in run.metrics if "flops" in line), run.config["flops"]
        more = f"held-out success {run.scores[-1]['success']:.1%}" if run.scores else ""
        bar.update(row, completed=min(max(used, default=0), budget), total=budget, more=more)


def _bars() -> Progress:
    console = Console(stderr=True, highlight=False)
    return Progress(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[more]}"),
        console=console,
        disable=not console.is_terminal,
    )


def _log(stage: DemoState, arm: str) -> Path:
    return stage.out / f"{arm}.log"
