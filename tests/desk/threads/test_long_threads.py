"""Threads with long records: how many of their steps are read again, and that nothing depends on what is stored."""

from pathlib import Path

import pytest

from gametape.agent import replay
from gametape.desk.threads.journal_follower import JournalFollower
from gametape.desk.threads.overview import archive_thread, list_threads, summarize_thread
from gametape.desk.threads.thread import ThreadDirectory
from gametape.desk.threads.thread_record import ThreadRecord
from gametape.record.journal_steps import JournalSteps
from gametape.record.trajectory_file import load_trajectory

from .bench import Bench, runs, says

TALK = [turn for number in range(8) for turn in (runs(f"echo {number}; date +%N"), says(f"Answer {number}."))]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of every step that is read from a journal."""
    numbers: list[int] = []
    real = JournalSteps._parse

    def counted(self: JournalSteps, line: bytes, index: int, *more: object) -> object:
        numbers.append(index + 1)
        return real(self, line, index, *more)

    monkeypatch.setattr(JournalSteps, "_parse", counted)
    return numbers


def talk(tmp_path: Path, messages: int) -> tuple[Bench, ThreadDirectory]:
    bench = Bench(tmp_path, TALK)
    directory = bench.begin()
    for number in range(messages):
        assert bench.say(directory, f"Message {number}").answer == f"Answer {number}."
    return bench, directory


def test_listing_and_showing_read_what_they_show(tmp_path: Path, parsed: list[int]) -> None:
    bench, directory = talk(tmp_path, 3)
    parsed.clear()
    [one] = list_threads(bench.home)
    assert (one.said, one.answered, one.turns, parsed) == (3, 3, 6, [])
    assert [step.step_id for step in ThreadRecord.open(directory).latest(2)] == [9, 10]
    assert parsed == [9, 10]
    whole = summarize_thread(directory)
    archive_thread(directory)
    parsed.clear()
    assert summarize_thread(directory)[1:] == whole[1:]
    directory.digest_file.path.unlink()
    assert summarize_thread(directory)[1:] == whole[1:]
    assert len(load_trajectory(directory.trajectory).steps) == 10


def test_a_message_reads_its_context_and_not_the_record(
    tmp_path: Path, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_FIRST_TURNS", 1)
    monkeypatch.setattr(replay, "_LAST_OBSERVED", 2)
    bench, directory = talk(tmp_path, 6)
    lines = directory.journal.read_bytes().splitlines(keepends=True)
    fresh = lines[17].replace(b'"gametape": {', b'"gametape": {"compacted": true, ', 1)
    assert b"Message 5" in fresh
    following = lines[18]
    assert b"gametape_after" in following
    directory.journal.write_bytes(b"".join([*lines[:17], fresh]))
    directory.digest_file.path.unlink()
    assert bench.say(directory, "Message 5").answer == "Answer 5.", "the message goes on in a context of its own"
    parsed.clear()
    assert bench.say(directory, "Message 6").answer == "Answer 6."
    assert set(parsed) <= {1, 2, 3, *range(17, 24)}
    assert load_trajectory(directory.journal).tokens_exact() is True


@pytest.mark.parametrize("kept", [True, False])
def test_a_stored_digest_changes_nothing_but_the_time(kept: bool, tmp_path: Path) -> None:
    bench, directory = talk(tmp_path, 2)
    if not kept:
        directory.digest_file.path.unlink()
    assert bench.say(directory, "Message 0").answer == "Answer 0."
    third = bench.say(directory, "Message 2")
    assert (third.answer, third.turns, third.step) == ("Answer 2.", 6, 10)
    assert [step.source for step in directory.load_trajectory().steps[7:]] == ["user", "agent", "agent"]
    assert directory.load_trajectory().tokens_exact() is True


def test_a_follower_passes_over_a_line_that_a_kill_has_torn(tmp_path: Path) -> None:
    bench, directory = talk(tmp_path, 1)
    whole = directory.journal.read_bytes()
    directory.journal.write_bytes(whole + whole.splitlines()[-1][:30])
    seen: list[int] = []
    follower = JournalFollower(directory.journal, lambda step: seen.append(step.step_id))
    bench.say(directory, "Message 1")
    follower.poll()
    assert seen == [5, 6, 7]
