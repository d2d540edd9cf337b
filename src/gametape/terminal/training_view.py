"""The progress of a training run on stderr: where it is, its stages, held-out scores and alarms.

On a terminal each stage has a bar. Elsewhere there is a line for the first update, for one every few seconds after it,
and for every evaluation.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gametape.core.config import RunConfig
from gametape.core.plural import count_of
from gametape.record.errors import printable_path
from gametape.train.alarms import TrainingAlarm
from gametape.train.config_changes import ConfigChange
from gametape.train.held_out_eval import HeldOutScore
from gametape.train.learner import UpdateMetrics
from gametape.train.progress import TrainingProgress as RunProgress
from gametape.train.training import RunCallbacks

_SECONDS_BETWEEN_LINES = 5.0


class TrainView:
    """Shows a run while it is open as a context; the run is given `callbacks`."""

    def __init__(
        self, config: RunConfig, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._next_line = clock()
        self._config = config
        self._heading: list[str] = []
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[more]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._warm = self._bar.add_task("warm start", total=None, more="", visible=False)
        self._episodes = self._bar.add_task(config.arm, total=config.episodes, more="", visible=False)
        self.callbacks = RunCallbacks(
            step=self._step,
            score=self._score,
            alarm=self._alarm,
            alarm_over=self._alarm_over,
            warm_start=self._warming,
            resumed=self._resumed,
        )

    def __enter__(self) -> "TrainView":
        self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.stop()

    def show_start(self, root: Path, changes: Sequence[ConfigChange] = ()) -> None:
        """Say above the first line where the run is, and what is other than before. A run that is refused before it
        has anything to show shows nothing."""
        self._heading = [f"run: {printable_path(root)}"]
        for setting, before, after in changes:
            self._heading.append(f"changed: {setting} from {_setting(before)} to {_setting(after)}")
        lengths = {"episodes", "flops"} & {change.setting for change in changes}
        if lengths and self._config.optim.schedule != "constant":
            self._heading.append("the learning rate's schedule now ends with the new length")

    def _print(self, text: str, style: str | None = None) -> None:
        heading, self._heading = self._heading, []
        for line in heading:
            self._console.print(line, markup=False, soft_wrap=True)
        self._console.print(text, style=style, markup=False, soft_wrap=True)

    def _line_is_due(self) -> bool:
        """Whether it is time for another line, where there is no bar."""
        now = self._clock()
        if self._console.is_terminal or now < self._next_line:
            return False
        self._next_line = now + _SECONDS_BETWEEN_LINES
        return True

    def _warming(self, done: int, total: int, update: UpdateMetrics) -> None:
        self._bar.update(self._warm, completed=done, total=total, visible=True, more=f"loss {_number(update.loss)}")
        if done == total:
            self._print(f"warm start: {count_of(total, 'update')}, loss {_number(update.loss)}")
            self._next_line = self._clock()
        elif self._line_is_due():
            self._print(f"warm start: update {done:,} of {total:,}, loss {_number(update.loss)}")

    def _resumed(self, progress: RunProgress) -> None:
        done = f"{progress.episodes:,} of {count_of(self._config.episodes, 'episode')}"
        self._print(f"resumed after {count_of(progress.step, 'batch', 'batches')}, {done}")

    def _step(self, progress: RunProgress, update: UpdateMetrics) -> None:
        more = f"loss {_number(update.loss)}  entropy {_number(update.entropy)}"
        self._bar.update(self._episodes, completed=progress.episodes, visible=True, more=more)
        if self._line_is_due():
            what = f"update {progress.version:,}  {more}" if update.lines else "no update: nothing to learn from"
            self._print(f"{_episodes(progress)}  {what}")

    def _score(self, progress: RunProgress, score: HeldOutScore) -> None:
        turns = ""
        if score.load_bearing is not None and score.ordinary is not None:
            turns = f"  (turns right: {score.load_bearing:.1%} load-bearing, {score.ordinary:.1%} others)"
        self._print(f"{_episodes(progress)}  held-out success {score.success:.1%}{turns}")

    def _alarm(self, alarm: TrainingAlarm) -> None:
        self._print(f"alarm: {alarm.name} {alarm.value:.3g} (limit {alarm.limit:.3g}): {alarm.advice}", "yellow")

    def _alarm_over(self, name: str) -> None:
        self._print(f"alarm over: {name}")


def _episodes(progress: RunProgress) -> str:
    return f"{count_of(progress.episodes, 'episode'):>16}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _setting(value: Any) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
