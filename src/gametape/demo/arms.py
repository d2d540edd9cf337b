"""The last stage: train RLVR and RLVR+TTF from the same weights with the same budget, each in its own process."""

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
from gametape.studio.run_files import RunFiles
from gametape.studio.sections.demo import DEMO_ARMS
from gametape.studio.sections.training import ARM_LABELS

_POLL_SECONDS = 0.5
_STOP_SECONDS = 60.0
"""Seconds that a run has to stop after SIGINT."""
_ARM_PROGRAM = (
    "import sys; from gametape.sandbox.linux import die_with_parent; die_with_parent(int(sys.argv.pop(1)))\n"
    "from gametape.cli.main import main; main()"
)
"""`gametape`, which ends with the demo: a run that outlived a killed demo would block resuming it."""
_PREFIX = "gametape: "


class ArmFailed(GametapeError):
    """A run ended without an answer. Its log says why; its exit code says which kind of error it is."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code if code in (BadInput.exit_code, MissingDependency.exit_code) else 1


def train_arms(state: DemoState) -> dict[str, Any]:
    """The answers of both `gametape train --json`. An interruption stops both runs in order."""
    with ExitStack() as running, _bars() as bar:
        arms = {arm: running.enter_context(_training(state, arm)) for arm in DEMO_ARMS}
        rows = {arm: bar.add_task(ARM_LABELS[arm], total=None, more="") for arm in DEMO_ARMS}
        answers: dict[str, Any] = {}
        while len(answers) < len(arms):
            time.sleep(_POLL_SECONDS)
            ended = [arm for arm, process in arms.items() if arm not in answers and process.poll() is not None]
            answers |= {arm: _read_answer(state, arm, arms[arm]) for arm in ended}
            _update_bars(state, bar, rows)
        return {arm: answers[arm] for arm in DEMO_ARMS}


@contextmanager
def _training(state: DemoState, arm: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a run, in a session of its own so that Ctrl-C reaches it only once, from here."""
    run = state.out / arm
    if (run / "config.toml").exists():
        arguments = ["--resume", str(run)]
    else:
        changes = (*state.changes, f"model={state.start}")
        arguments = [str(state.config(arm)), "--out", str(run)]
        arguments += [word for change in changes for word in ("--set", change)]
    demo = str(os.getpid())
    command = [sys.executable, "-c", _ARM_PROGRAM, demo, "train", *arguments, "--home", str(state.home), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with _log(state, arm).open("wb") as log:
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
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _read_answer(state: DemoState, arm: str, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The JSON on the last line of a run's output. A run that had to stop prints one too."""
    assert process.stdout
    output = process.stdout.read().decode().splitlines()
    if not output:
        log = _log(state, arm).read_text(errors="replace").splitlines()
        errors = [line.removeprefix(_PREFIX) for line in log if line.startswith(_PREFIX)]
        reason = errors[-1] if errors else f"exit code {process.returncode}"
        raise ArmFailed(f"{arm}: {reason} (its log: {printable_path(_log(state, arm))})", process.returncode)
    answer: dict[str, Any] = json.loads(output[-1])
    return answer


def _update_bars(state: DemoState, bar: Progress, rows: dict[str, Any]) -> None:
    """Show how much of its compute budget each run has used, from its log."""
    for arm, row in rows.items():
        run = RunFiles(state.out / arm)
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


def _log(state: DemoState, arm: str) -> Path:
    return state.out / f"{arm}.log"
