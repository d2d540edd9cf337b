"""Fresh calls that one process leaves for others: each set goes to one of them, and nothing but data is read."""

import hashlib
import os
import pickle
from pathlib import Path

from gametape.verify.fresh.judge import CALLS, FreshJudge
from gametape.verify.fresh.source import FreshSource
from gametape.verify.fresh.stored_calls import CallSet, StoredCalls
from gametape.verify.replay.sandbox import ReplaySandboxes
from tests.verify.fresh.conftest import Judged


def judge_with(home: Path, task: Judged, sandboxes: ReplaySandboxes) -> FreshJudge:
    stored = StoredCalls(home, task.loaded_task)
    return FreshJudge([*task.recording.transcripts.values()], task.loaded_task, sandboxes, stored=stored)


def keys(calls: CallSet) -> set[str]:
    return {key for call in calls.calls for key in call.keys}


def test_another_judge_needs_no_reference_and_asks_as_much(durations: Judged, tmp_path: Path) -> None:
    with ReplaySandboxes() as sandboxes, judge_with(tmp_path, durations, sandboxes) as first:
        assert first.ready() == CALLS
    left = sorted((tmp_path / "fresh").rglob("[0-9]"))
    assert left
    with ReplaySandboxes() as sandboxes, judge_with(tmp_path, durations, sandboxes) as second:
        assert second.ready() == CALLS
        assert second.source is not None
        assert not second.source._players, "no process of the reference was started"
        start = durations.loaded_task.start.under(["durations.py"])
        right, wrong = second.judge(durations.reference), second.judge(start)
    assert (right.calls, right.agreed) == (CALLS, CALLS)
    assert wrong.agreed == 0
    assert len(sorted((tmp_path / "fresh").rglob("[0-9]"))) == len(left) - 1


def test_no_set_is_taken_twice(durations: Judged, tmp_path: Path) -> None:
    stored, source = StoredCalls(tmp_path, durations.loaded_task), durations.judge.source
    assert isinstance(source, FreshSource)
    drawn: list[CallSet] = []

    def draw() -> CallSet:
        drawn.append(CallSet(2, tuple(source.draw(len(drawn), 6))))
        return drawn[-1]

    stored.fill(draw)
    taken = []
    while (found := stored.take()) is not None:
        taken.append(found)
    assert [keys(each) for each in taken] == [keys(each) for each in drawn]
    assert all(each.wanted == 2 for each in taken)
    assert stored.take() is None


class Forged:
    """What is not data."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("forged",)


def test_nothing_but_data_is_read(durations: Judged, tmp_path: Path) -> None:
    stored = StoredCalls(tmp_path, durations.loaded_task)
    stored.fill(lambda: CallSet(1, ()))
    (directory,) = (tmp_path / "fresh").iterdir()
    for number, content in enumerate((Forged(), [1], CallSet)):
        packed = pickle.dumps(content)
        (directory / str(number)).write_bytes(hashlib.sha256(packed).digest() + packed)
    (directory / "3").write_bytes(b"cut short")
    assert stored.take() is None
    assert not Path("forged").exists()
