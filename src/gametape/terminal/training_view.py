"""The progress of a training run on stderr: where it is, what it spends its time on, held-out scores and alarms.

On a terminal there is one table, which is kept up to date, above a bar. Elsewhere there is a line for every update and
every evaluation.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gametape.core.config import RunConfig
from gametape.core.plural import count_of
from gametape.record.errors import printable_path
from gametape.train.alarms import TrainingAlarm
from gametape.train.config_changes import ConfigChange
from gametape.train.held_out_eval import HeldOutScore
from gametape.train.progress import TrainingProgress as RunProgress
from gametape.train.run_status import RunStatus
from gametape.train.training import RunCallbacks
from gametape.train.update_metrics import UpdateMetrics

_SECONDS_BETWEEN_LINES = 5.0
"""Of a warm start, whose updates are short."""
_MOST_BUCKETS = 12
"""Buckets whose pass rate is shown; the others are counted."""


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
        self._last_step = ""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[more]}"),
            console=self._console,
        )
        self._status: RunStatus | None = None
        self._in_flight: Callable[[], int] = lambda: 0
        self._live = Live(get_renderable=self._render, console=self._console, refresh_per_second=2)
        self._warm = self._bar.add_task("warm start", total=None, more="", visible=False)
        self._episodes = self._bar.add_task(config.arm, total=config.episodes, more="", visible=False)
        self.callbacks = RunCallbacks(
            opened=self._opened,
            step=self._step,
            status=self._show_status,
            score=self._score,
            alarm=self._alarm,
            alarm_over=self._alarm_over,
            warm_start=self._warming,
            resumed=self._resumed,
            planned=self._planned,
        )

    def __enter__(self) -> "TrainView":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        return Group(*([self._table(self._status)] if self._status else []), self._bar)

    def _table(self, status: RunStatus) -> Table:
        """The run as of its last update, with the rollouts that are open now."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        for name, value in {**_figures(status), "in flight": f"{self._in_flight():,}"}.items():
            table.add_row(name, Text(value))
        return table

    def show_start(self, root: Path, changes: Sequence[ConfigChange] = ()) -> None:
        """Say above the first line where the run is, and what is other than before. A run that is refused before it
        has anything to show shows nothing."""
        self._heading = [f"run: {printable_path(root)}"]
        for setting, before, after in changes:
            self._heading.append(f"changed: {setting} from {_setting(before)} to {_setting(after)}")
        lengths = {"episodes", "flops"} & {change.setting for change in changes}
        if lengths and self._config.optim.schedule != "constant":
            self._heading.append("the learning rate's schedule now ends with the new length")

    def _planned(self, memory: str) -> None:
        """A tiny policy fits everywhere."""
        if self._config.model != "tiny":
            self._print(f"memory: {memory}")

    def _print(self, text: str, style: str | None = None) -> None:
        heading, self._heading = self._heading, []
        for line in heading:
            self._console.print(line, markup=False, soft_wrap=True)
        self._console.print(text, style=style, markup=False, soft_wrap=True)

    def _line_is_due(self) -> bool:
        """Whether it is time for another line of the warm start, where there is no bar."""
        now = self._clock()
        if self._console.is_terminal or now < self._next_line:
            return False
        self._next_line = now + _SECONDS_BETWEEN_LINES
        return True

    def _opened(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight

    def _warming(self, done: int, total: int, update: UpdateMetrics) -> None:
        self._bar.update(self._warm, completed=done, total=total, visible=True, more=f"loss {_number(update.loss)}")
        if done == total:
            self._print(f"warm start: {count_of(total, 'update')}, loss {_number(update.loss)}")
        elif self._line_is_due():
            self._print(f"warm start: update {done:,} of {total:,}, loss {_number(update.loss)}")

    def _resumed(self, progress: RunProgress) -> None:
        done = f"{progress.episodes:,} of {count_of(self._config.episodes, 'episode')}"
        self._print(f"resumed after {count_of(progress.step, 'batch', 'batches')}, {done}")

    def _step(self, progress: RunProgress, update: UpdateMetrics) -> None:
        more = f"loss {_number(update.loss)}  entropy {_number(update.entropy)}"
        self._bar.update(self._episodes, completed=progress.episodes, visible=True, more=more)
        self._last_step = f"update {progress.version:,}  {more}" if update.lines else "no update: nothing to learn from"

    def _show_status(self, status: RunStatus) -> None:
        """The table takes it from here; elsewhere it is a line."""
        self._status = status
        if not self._console.is_terminal:
            figures = {name: value for name, value in _figures(status).items() if value and name in _ON_LINES}
            rest = "  ".join(f"{name} {value}" for name, value in figures.items())
            self._print(f"{count_of(status.episodes, 'episode'):>16}  {self._last_step}  {rest}")

    def _score(self, progress: RunProgress, score: HeldOutScore) -> None:
        turns = ""
        if score.load_bearing is not None and score.ordinary is not None:
            turns = f"  (turns right: {score.load_bearing:.1%} load-bearing, {score.ordinary:.1%} others)"
        self._print(f"{_episodes(progress)}  held-out success {score.success:.1%}{turns}")

    def _alarm(self, alarm: TrainingAlarm) -> None:
        self._print(f"alarm: {alarm.name} {alarm.value:.3g} (limit {alarm.limit:.3g}): {alarm.advice}", "yellow")

    def _alarm_over(self, name: str) -> None:
        self._print(f"alarm over: {name}")


_ON_LINES = ("reward", "tokens a second", "time", "in flight", "staleness", "to go")


def _figures(status: RunStatus) -> dict[str, str]:
    """By name, as texts; empty where there is nothing to say."""
    return {
        "update": f"{status.update:,}",
        "reward": f"{status.reward:.3f}",
        "pass rate": _pass_rates(status),
        "held-out success": "" if status.success is None else f"{status.success:.1%}",
        "tokens a second": f"{status.tokens_per_second:,.0f}",
        "time": ", ".join(f"{name} {share:.0%}" for name, share in status.time.items()),
        "in flight": f"{status.in_flight:,}",
        "staleness": f"{status.staleness:.1f}",
        "to go": "" if status.eta_seconds is None else _duration(status.eta_seconds),
    }


def _pass_rates(status: RunStatus) -> str:
    """By bucket, the best first; of very many buckets some."""
    rates = sorted(status.pass_rates.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{name} {rate:.0%}" for name, rate in rates[:_MOST_BUCKETS])
    return f"{shown} and {len(rates) - _MOST_BUCKETS} more" if len(rates) > _MOST_BUCKETS else shown


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def _episodes(progress: RunProgress) -> str:
    return f"{count_of(progress.episodes, 'episode'):>16}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _setting(value: Any) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
