"""The progress of mining: the current phase, and how many candidates became tasks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gametape.core.plural import count_of
from gametape.tasks.mining.miner import MiningObserver
from gametape.terminal.wait_line import WaitingLine, waiting


class _MiningBar:
    """A progress bar on stderr, with rate and yield; without a terminal, a line for each phase and now and then."""

    def __init__(self, bar: Progress, line: WaitingLine | None) -> None:
        self._bar = bar
        self._line = line
        self._task = bar.add_task("", total=None, more="")
        self._status = ""
        self._valid = self._tried = 0

    def on_status(self, status: str) -> None:
        self._status = status
        self._bar.update(self._task, description=status, total=None, more="")
        if self._line:
            self._line.tell(status)

    def on_count(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total or None)
        if self._line and total:
            self._line.text = f"{self._status} ({done} of {total})"

    def on_phase_start(self, phase: str, total: int, done: Sequence[dict[str, Any]]) -> None:
        self._tried = len(done)
        self._valid = sum("reason" not in record for record in done)
        self._bar.reset(self._task, description=f"trying {phase}s", total=total, completed=len(done), more="")
        if self._line:
            self._line.tell(f"trying {count_of(total, phase)}" + (f", {len(done)} of them done before" if done else ""))

    def on_candidate_done(self, record: dict[str, Any]) -> None:
        self._tried += 1
        self._valid += "reason" not in record
        task = self._bar.tasks[0]
        rate = f"{task.speed * 3600:.0f} an hour, " if task.speed else ""
        self._bar.update(self._task, advance=1, more=f"{rate}{self._valid / self._tried:.0%} valid")
        if self._line:
            total = f" of {task.total:.0f}" if task.total else ""
            self._line.text = f"tried {self._tried}{total}, {self._valid / self._tried:.0%} valid"


@contextmanager
def mining_progress() -> Iterator[MiningObserver]:
    """An observer that shows the progress of mining on stderr."""
    console = Console(stderr=True)
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        TextColumn("{task.fields[more]}"),
    )
    if console.is_terminal:
        with Progress(*columns, console=console, transient=True) as bar:
            yield _MiningBar(bar, None)
    else:
        with waiting("reading the project", console) as line:
            yield _MiningBar(Progress(console=console, disable=True), line)
