"""Signs of life without a terminal. The clock is a queue that the test fills."""

import io
import queue
import threading

import pytest
from rich.console import Console

from gametape.terminal.wait_line import Wait, waiting


class _Pauses:
    """Pauses that end when the test says so, one after the other."""

    def __init__(self) -> None:
        self.asked: queue.Queue[float] = queue.Queue()
        self._answers: queue.Queue[bool] = queue.Queue()

    def __call__(self, over: threading.Event) -> Wait:
        def wait(seconds: float) -> bool:
            self.asked.put(seconds)
            return self._answers.get()

        return wait

    def pass_one(self) -> float:
        """Let a pause pass, and wait until the next has begun."""
        seconds = self.asked.get()
        self._answers.put(False)
        return seconds

    def end(self) -> None:
        self.asked.get()
        self._answers.put(True)


def test_a_long_wait_says_that_it_goes_on() -> None:
    out, pauses = io.StringIO(), _Pauses()
    with waiting("verifying it", Console(file=out, width=20), pauses) as line:
        assert pauses.pass_one() == 30
        assert pauses.pass_one() == 30
        line.tell("building [an] environment of 12 distributions")
        assert pauses.pass_one() == 30
        pauses.end()
    lines = out.getvalue().splitlines()
    assert lines[0] == "verifying it: still at it after 30 s"
    assert "building [an] environment of 12 distributions" in lines
    assert lines[-1] == "building [an] environment of 12 distributions: still at it after 90 s"


def test_a_short_wait_says_nothing_and_an_error_passes() -> None:
    out = io.StringIO()
    with pytest.raises(ValueError, match="no"), waiting("verifying it", Console(file=out)):
        raise ValueError("no")
    assert out.getvalue() == ""


def test_a_stage_is_told_when_it_begins_and_counted_on_a_terminal() -> None:
    out = io.StringIO()
    with waiting("verifying it", Console(file=out, width=20)) as line:
        for done in range(3):
            line.show_stage("recording tests", done, 2)
        line.show_stage("making fresh calls", 0, 0)
    assert out.getvalue().splitlines() == ["verifying it: recording tests (0 of 2)", "verifying it: making fresh calls"]
    shown = io.StringIO()
    with waiting("verifying it", Console(file=shown, width=80, force_terminal=True)) as line:
        line.show_stage("recording tests", 1, 2)
        assert line.status is not None
        assert line.status.status == "verifying it: recording tests (1 of 2)"
