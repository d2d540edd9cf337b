"""The progress of a training run on stderr: a bar for each stage, held-out scores and alarms above it."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gametape.core.config import RunConfig
from gametape.train.alarms import TrainingAlarm
from gametape.train.held_out_eval import HeldOutScore
from gametape.train.learner import UpdateMetrics
from gametape.train.progress import TrainingProgress as RunProgress
from gametape.train.training import RunCallbacks


class TrainView:
    """Shows a run while it is open as a context; the run is given `callbacks`."""

    def __init__(self, config: RunConfig) -> None:
        self._console = Console(stderr=True, highlight=False)
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
        self.callbacks = RunCallbacks(step=self._step, score=self._score, alarm=self._alarm, warm_start=self._warming)

    def __enter__(self) -> "TrainView":
        self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.stop()

    def _warming(self, done: int, total: int, update: UpdateMetrics) -> None:
        self._bar.update(self._warm, completed=done, total=total, visible=True, more=f"loss {_number(update.loss)}")
        if done == total:
            self._console.print(f"warm start: {total} updates, loss {_number(update.loss)}", markup=False)

    def _step(self, progress: RunProgress, update: UpdateMetrics) -> None:
        more = f"loss {_number(update.loss)}  entropy {_number(update.entropy)}"
        self._bar.update(self._episodes, completed=progress.episodes, visible=True, more=more)

    def _score(self, progress: RunProgress, score: HeldOutScore) -> None:
        turns = ""
        if score.load_bearing is not None and score.ordinary is not None:
            turns = f"  (turns right: {score.load_bearing:.1%} load-bearing, {score.ordinary:.1%} others)"
        text = f"{progress.episodes:>7} episodes  held-out success {score.success:.1%}{turns}"
        self._console.print(text, markup=False)

    def _alarm(self, alarm: TrainingAlarm) -> None:
        text = f"alarm: {alarm.name} {alarm.value:.3g} (limit {alarm.limit:.3g}): {alarm.advice}"
        self._console.print(text, style="yellow", markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
