"""What is recorded of a task's tests, and what is kept of it."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from gametape.core.task import TaskTests
from gametape.record.source_tree import SourceTree
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay import recording as recording_module
from gametape.verify.replay.recording import record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.store import NotReplayable, RecordedTest, TranscriptStore
from gametape.verify.replay.surface import derive_surface
from gametape.verify.replay.transcript import read_frame
from gametape.verify.runner import ZygotePool
from tests.verify.replay.conftest import Recorded
from tests.verify.replay.shelf_task import held_out, shelf_task, visible


class _NoZygotes(ZygotePool):
    """A pool from which nothing may be taken: everything must be known already."""

    def take(self, *_: object) -> None:  # type: ignore[override]
        raise AssertionError("a test was run")


def test_each_test_has_its_way(recorded: Recorded) -> None:
    recording = recorded.recording
    assert set(recording.transcripts) == {
        *map(visible, ("total", "ratio", "words", "shelf", "apply", "remember", "extend")),
        *map(held_out, ("empty", "remember_more")),
    }
    assert recording.live == {visible("noise")}
    assert {test: reason.word for test, reason in recording.reasons.items()} == {
        visible("noise"): "unsteady",
        held_out("never_there"): "error",
    }
    assert recording.seconds.keys() == recording.transcripts.keys() | recording.live
    assert re.fullmatch(
        r"answers differ from run to run: noise\(\) gave 0\.\d+ and 0\.\d+", recording.reasons[visible("noise")].detail
    )


class _EndedEarly(ZygotePool):
    """A pool that gives out as much as the first part of a recording takes."""

    left = 2

    def take(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().take(*arguments)


def test_what_was_recorded_before_an_early_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "_KEPT_TOGETHER", 4)
    task = shelf_task()
    with ReplaySandboxes() as sandboxes, _EndedEarly(1) as zygotes, pytest.raises(KeyboardInterrupt):
        record_tests(task, zygotes, sandboxes, tmp_path)

    known = TranscriptStore(tmp_path / "transcripts", task, derive_surface(task)).read(task.task.tests.every)
    assert [*known] == [*task.task.tests.every[:4]]


def test_what_one_test_leaves_behind_is_kept_from_the_next(recorded: Recorded) -> None:
    assert recorded.recording.isolated == {visible("remember"), held_out("remember_more")}


def test_requests_count_from_zero_and_number_what_they_expose(recorded: Recorded) -> None:
    frames = recorded.recording.transcripts[visible("shelf")].frames
    messages = [read_frame(frame.body) for frame in frames]
    requests = [message for frame, message in zip(frames, messages, strict=True) if frame.by_test]
    assert [message[1] for message in requests] == [*range(len(requests))]
    assert not any(message[4] for message in requests)  # nothing is released
    handles = {
        message[2].payload[0]: message[1]
        for frame, message in zip(frames, messages, strict=True)
        if not frame.by_test and getattr(message[2], "kind", None) == words.HANDLE
    }
    assert handles
    assert all(number >> 20 == request for number, request in handles.items())
    comparisons = [message[3] for message in requests if message[2] == words.EQUALS]
    assert [candidates for _, candidates in comparisons] == [(["a", "b"],), (["a"],)]


def test_another_task_with_the_same_reference_and_suite_records_nothing(recorded: Recorded) -> None:
    other = shelf_task("another task")
    again = record_tests(other, _NoZygotes(), recorded.sandboxes, recorded.home)
    assert again.transcripts == recorded.recording.transcripts
    assert (again.live, again.isolated) == (recorded.recording.live, recorded.recording.isolated)
    assert again.reasons == recorded.recording.reasons


def test_a_task_that_shows_fewer_tests_below_its_sources_records_nothing(tmp_path: Path) -> None:
    shelf = shelf_task()
    assert shelf.reference is not None
    task = shelf.task.model_copy(update={"source_paths": ["shelf.py", "tests"]})
    one = dataclasses.replace(shelf, task=task)
    fewer = SourceTree({"tests/test_shelf.py": b"def test_total(): ..."}).overlaid_on(shelf.reference)
    other = dataclasses.replace(one, reference=fewer)
    recorded_test = RecordedTest(visible("total"), passed=True)

    TranscriptStore(tmp_path, one, derive_surface(one)).add([recorded_test])

    assert [*TranscriptStore(tmp_path, other, derive_surface(other)).read([visible("total")])] == [visible("total")]


def test_damaged_files_are_recorded_again(recorded: Recorded, tmp_path: Path) -> None:
    files = sorted((recorded.home / "transcripts").iterdir())
    assert len(files) == 2
    directory = tmp_path / "transcripts"
    directory.mkdir()
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, (contents[0][:-9], contents[1][:40] + b"?" + contents[1][41:]), strict=True):
        (directory / path.name).write_bytes(content)
    again = record_tests(recorded.loaded_task, recorded.zygotes, recorded.sandboxes, tmp_path)
    assert again.transcripts.keys() == recorded.recording.transcripts.keys()
    assert record_tests(recorded.loaded_task, _NoZygotes(), recorded.sandboxes, tmp_path).transcripts


def test_without_a_reference_nothing_is_replayable(recorded: Recorded) -> None:
    bare = dataclasses.replace(recorded.loaded_task, reference=None)
    with ReplaySandboxes() as sandboxes:
        recording = record_tests(bare, _NoZygotes(), sandboxes)
    assert not recording.transcripts
    assert {reason.word for reason in recording.reasons.values()} == {"reference"}


_ODD = """import pytest

from shelf import total


class TestTotal:
    room = 2

    @pytest.fixture(autouse=True)
    def scratch(self, tmp_path):
        self.path = tmp_path / "numbers"

    @pytest.mark.parametrize("text", ["a::b", "x[1]", "../..", ""])
    def test_of_letters(self, text):
        self.path.write_text(text)
        assert total(map(ord, self.path.read_text())) == sum(map(ord, text))

    def test_of_an_object_of_its_own(self):
        assert total([1]) is total.__self__
"""


def test_odd_ids_and_classes_are_recorded_alone(recorded: Recorded) -> None:
    cases = [f"tests/test_odd.py::TestTotal::test_of_letters[{case}]" for case in ("a::b", "x[1]", "../..", "")]
    other = "tests/test_odd.py::TestTotal::test_of_an_object_of_its_own"
    shelf = recorded.loaded_task
    tests = TaskTests(fail_to_pass=[*cases, other], pass_to_pass=[])
    task = dataclasses.replace(
        shelf,
        task=shelf.task.model_copy(update={"tests": tests}),
        suite=SourceTree({"tests/test_odd.py": _ODD.encode()}),
    )

    recording = record_tests(task, recorded.zygotes, recorded.sandboxes)

    assert [*recording.transcripts] == cases
    assert len({transcript.frames for transcript in recording.transcripts.values()}) == len(cases)
    assert recording.reasons.keys() == {other}


_FALSE = """from shelf import Shelf


def test_false():
    shelf = Shelf(1)
    assert shelf.put("b") == 3
"""


def test_a_failed_assertion_is_told_by_its_line(recorded: Recorded) -> None:
    shelf = recorded.loaded_task
    tests = TaskTests(fail_to_pass=["tests/test_false.py::test_false"], pass_to_pass=[])
    task = dataclasses.replace(
        shelf,
        task=shelf.task.model_copy(update={"tests": tests}),
        suite=SourceTree({"tests/test_false.py": _FALSE.encode()}),
    )

    (reason,) = record_tests(task, recorded.zygotes, recorded.sandboxes).reasons.values()

    assert reason == NotReplayable("assertion", 'assert shelf.put("b") == 3 AssertionError')
