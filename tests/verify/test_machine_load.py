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
