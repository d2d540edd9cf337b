"""Time limits on a busy machine."""

import os
import time
from pathlib import Path

import pytest

from gametape.verify import machine_load
from gametape.verify.replay.connection import FrameConnection
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from tests.verify.replay.shelf_task import RIGHT, shelf_task, sources


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.10 0.20 0.30 1/200 77", 1.0),
        ("6.00 0.20 0.30 1/200 77", 3.0),
        ("0.10 0.20 0.30 10/200 77", 5.0),
        ("900.0 0.20 0.30 1/200 77", 8.0),
        ("no numbers here at all", 1.0),
        (None, 1.0),
    ],
)
def test_limits_grow_with_what_wants_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, expected: float
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(machine_load, "_LOAD", tmp_path / "loadavg")
    if text is not None:
        (tmp_path / "loadavg").write_text(text)
    assert machine_load.slowdown() == expected


def test_what_hangs_uses_up_what_a_busy_machine_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load, "slowdown", lambda: 4.0)
    allowance = machine_load.LoadAllowance(12.0)
    assert allowance.lengthen(2.0) == 8.0
    assert allowance.lengthen(20.0) == 32.0, "never more than what is left"
    allowance.spend(10.0)
    assert allowance.lengthen(2.0) == 4.0
    allowance.spend(10.0)
    assert allowance.lengthen(2.0) == 2.0
    assert machine_load.LoadAllowance().lengthen(100.0) == 400.0


def test_an_attempt_that_hangs_twice_waits_for_the_machine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthened = []
    lengthen = machine_load.LoadAllowance.lengthen

    def keep(self: machine_load.LoadAllowance, seconds: float) -> float:
        lengthened.append(lengthen(self, seconds))
        return lengthened[-1]

    def hang(_connection: FrameConnection, _deadline: float) -> bool:
        raise TimeoutError("no answer in time")

    monkeypatch.setattr(machine_load, "slowdown", lambda: 8.0)
    monkeypatch.setattr(machine_load.LoadAllowance, "lengthen", keep)
    allowance = machine_load.LoadAllowance(12.0)
    with (
        ReplaySandboxes() as sandboxes,
        Replayer(shelf_task(), sources(RIGHT), sandboxes, allowance=allowance) as replayer,
    ):
        assert [replayer.converse(hang, 4.0) for _ in range(3)] == ["timed out"] * 3
        assert replayer.has_hung
    assert lengthened == [16.0, 1.0], "and the third time nothing is asked"


def test_the_time_that_a_sandbox_needs_to_start_is_not_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, deadlines = [], []
    open_session = Replayer._open

    def open_late(replayer: Replayer) -> object:
        session = open_session(replayer)
        opened.append(time.monotonic())
        return session

    def converse(_connection: FrameConnection, deadline: float) -> bool:
        deadlines.append(deadline)
        return True

    monkeypatch.setattr(Replayer, "_open", open_late)
    with ReplaySandboxes() as sandboxes, Replayer(shelf_task(), sources(RIGHT), sandboxes) as replayer:
        assert replayer.converse(converse, 3.0) is None
    assert deadlines[0] >= opened[0] + 3.0
