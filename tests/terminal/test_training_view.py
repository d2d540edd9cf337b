"""What a training run prints where there is no terminal: first, now and then, and at every evaluation."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gametape.core.config import RunConfig
from gametape.terminal.training_view import TrainView
from gametape.train.alarms import TrainingAlarm
from gametape.train.config_changes import ConfigChange
from gametape.train.held_out_eval import HeldOutScore
from gametape.train.progress import TrainingProgress
from gametape.train.run_status import RunStatus
from gametape.train.update_metrics import UpdateMetrics

LEARNED = UpdateMetrics(lines=3, tokens=9, forwarded=9, loss=0.5, entropy=1.25)
NOTHING = UpdateMetrics(lines=0, tokens=0, forwarded=0)
TIMES = {"decode": 0.6, "tools": 0.25, "verify": 0.1, "coach": 0.0, "learn": 0.35, "idle": 0.05}
STATUS = RunStatus(3, 48, 0.5, {"greet": 0.25, "slugs": 1.0}, 0.125, 1234.5, TIMES, 17, 0.5, 600.0)
SCORE = HeldOutScore(8, 0.25, None, None, None, 0, 0, 0)


class _Shown:
    """A view without a terminal, whose clock stands still until it is moved."""

    def __init__(self, schedule: str = "constant", terminal: bool = False) -> None:
        self.now = 100.0
        self._out = io.StringIO()
        config = RunConfig.model_validate(
            {"arm": "rlvr", "tasks": "worlds:easy", "episodes": 800, "optim": {"schedule": schedule}}
        )
        console = Console(file=self._out, width=100, force_terminal=terminal, highlight=False)
        self.view = TrainView(config, console, clock=lambda: self.now)
        self.tell = self.view.callbacks

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self._out.getvalue().splitlines()]


def test_every_update_is_told_on_one_line() -> None:
    shown = _Shown()
    for step in (1, 2):
        shown.tell.step(TrainingProgress(step=step, version=step, episodes=16 * step), LEARNED)
        shown.tell.status(replace(STATUS, update=step, episodes=16 * step))
    line = (
        "loss 0.500  entropy 1.250  reward 0.500  tokens a second 1,234  "
        "time decode 60%, tools 25%, verify 10%, coach 0%, learn 35%, idle 5%  "
        "in flight 17  staleness 0.5  to go 10 min"
    )
    assert shown.lines == [f"16 episodes  update 1  {line}", f"32 episodes  update 2  {line}"]


def test_an_update_without_a_gradient_is_no_update() -> None:
    shown = _Shown()
    shown.tell.step(TrainingProgress(step=1, version=0, episodes=1), NOTHING)
    shown.tell.status(replace(STATUS, update=0, episodes=1))
    assert shown.lines[0].startswith("1 episode  no update: nothing to learn from  reward 0.500")


def test_every_evaluation_is_told_on_one_line() -> None:
    shown = _Shown()
    for episodes in (0, 1, 16):
        shown.tell.score(TrainingProgress(episodes=episodes), SCORE)
    assert shown.lines == [f"{text}  held-out success 25.0%" for text in ("0 episodes", "1 episode", "16 episodes")]


def test_a_warm_start_is_told_while_it_goes_on() -> None:
    shown = _Shown()
    for done in range(1, 13):
        shown.tell.warm_start(done, 12, LEARNED)
        shown.now += 1
    assert shown.lines == [
        "warm start: update 1 of 12, loss 0.500",
        "warm start: update 6 of 12, loss 0.500",
        "warm start: update 11 of 12, loss 0.500",
        "warm start: 12 updates, loss 0.500",
    ]


def test_one_update_is_no_updates() -> None:
    shown = _Shown()
    shown.tell.warm_start(1, 1, LEARNED)
    assert shown.lines == ["warm start: 1 update, loss 0.500"]


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_resumed_run_says_where_it_is_and_what_is_new(schedule: str) -> None:
    shown = _Shown(schedule)
    shown.view.show_start(Path("runs/first"), [ConfigChange("episodes", 96, 800), ConfigChange("flops", None, 5000)])
    assert shown.lines == []
    shown.tell.resumed(TrainingProgress(step=1, version=0, episodes=96))
    follows = ["the learning rate's schedule now ends with the new length"] if schedule == "cosine" else []
    assert shown.lines == [
        "run: runs/first",
        "changed: episodes from 96 to 800",
        "changed: flops from none to 5,000",
        *follows,
        "resumed after 1 batch, 96 of 800 episodes",
    ]


def test_alarms_are_told_and_so_is_their_end() -> None:
    shown = _Shown()
    shown.tell.alarm(TrainingAlarm("mismatch", 0.5, 0.05, "[bold]look[/]" + " far" * 30))
    shown.tell.alarm_over("mismatch")
    assert shown.lines == ["alarm: mismatch 0.5 (limit 0.05): [bold]look[/]" + " far" * 30, "alarm over: mismatch"]


def test_a_terminal_has_one_table_that_is_kept_up_to_date() -> None:
    shown = _Shown(terminal=True)
    shown.tell.opened(lambda: 41)
    shown.tell.step(TrainingProgress(step=1, version=1, episodes=16), LEARNED)
    shown.tell.status(STATUS)
    assert shown.lines == []
    with shown.view:
        pass
    text = " ".join(re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", " ".join(shown.lines)).split())
    for figure in ("slugs 100%, greet 25%", "held-out success 12.5%", "1,234", "idle 5%", "in flight 41", "10 min"):
        assert figure in text
