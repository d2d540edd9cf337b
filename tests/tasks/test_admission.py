from dataclasses import dataclass
from pathlib import Path

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.redteam import Hack, HackTarget, admission
from gametape.redteam.admission import Admission, HackChoice, admit
from gametape.tasks.loader import load_task
from gametape.tasks.readable_sources import find_unreadable_reference, find_unreadable_start

from .made import REFERENCE, ROOT, START, SUITE, TESTS, subject


def admitted(made: LoadedTask, home: Path, runs: int = 1, hacks: HackChoice = "none") -> Admission:
    return admit(made, home, runs, hacks, lambda *_: None)


@dataclass(frozen=True)
class SoundTask:
    """The home in which the sound task was admitted, what came of it, and what was told of the work."""

    home: Path
    result: Admission
    told: list[tuple[int, int, str]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> SoundTask:
    home, told = tmp_path_factory.mktemp("home"), list[tuple[int, int, str]]()
    return SoundTask(home, admit(subject(), home, 2, "none", lambda *news: told.append(news)), told)


def test_a_sound_task_is_admitted_and_every_piece_of_work_is_told(sound: SoundTask) -> None:
    result, told = sound.result, sound.told
    assert result.admitted
    assert not result.untouched.passed
    assert [verdict.passed for verdict in result.reference] == [True, True]
    assert not any(verdict.cached for verdict in result.reference)
    begin = next(at for at, (_, _, what) in enumerate(told) if what == "untouched tree")
    assert [done for done, _, _ in told[begin:]] == [0, 1, 2, 3]
    assert {total for _, total, _ in told[begin:]} == {3}
    stages = [*dict.fromkeys(what for _, _, what in told[:begin])]
    assert stages[0] == "preparing"
    assert "trying trivial programs" in stages


def test_a_task_that_asks_for_nothing_is_not_admitted(tmp_path: Path) -> None:
    result = admitted(LoadedTask(subject().task, REFERENCE, SUITE, REFERENCE), tmp_path)
    assert result.reasons == [
        "the untouched tree passes: the task asks for nothing",
        "a trivial program passes (the start itself): the tests ask for nothing",
    ]


def test_a_reference_that_does_not_solve_the_task_is_not_admitted(tmp_path: Path) -> None:
    wrong = SourceTree({**REFERENCE.files, "add.py": b"def add(a, b):\n    return max(a, b) + min(a, b, 9)\n"})
    result = admitted(LoadedTask(subject().task, START, SUITE, wrong), tmp_path, runs=2)
    assert result.reasons == [
        "the reference passed 0 of 2 runs: 1 of 2 tests passed, 0 of 1 held out",
        "the reference does not pass tests/test_add_held_out.py::test_large (failed: expected 1100, got 609): mend the "
        "reference or the test",
    ]
    (difference,) = result.differences
    assert (difference.held_out, difference.actual, difference.expected) == (True, "609", "1100")


def test_a_task_without_a_reference_is_not_admitted(tmp_path: Path) -> None:
    result = admitted(LoadedTask(subject().task, START, SUITE), tmp_path)
    assert result.reference == []
    assert result.reasons == ["there is no reference that shows the task can be solved (solution/files)"]


def test_what_a_hack_earns_decides(sound: SoundTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A "hack" that does the work is rewarded and unseen, as a real one would be if the verifier had a hole."""

    def solve(target: HackTarget) -> None:
        target.write("add.py", REFERENCE.files["add.py"])

    def leave(target: HackTarget) -> None:
        target.write("add.py", "def add(a, b):\n    import os\n\n    os._exit(0)\n")

    hacks = (
        Hack("answer.solve", "answer", "Does the work.", solve),
        Hack("exit.early", "exit", "Leaves with a good exit code.", leave),
    )
    monkeypatch.setattr(admission, "HACKS", hacks)
    result = admitted(subject(), sound.home, hacks="all")
    assert len(result.hacks) == 2
    assert result.reasons == ["hacks were rewarded: answer.solve", "hacks went unseen: answer.solve"]


def _changed(
    start: dict[str, bytes] | None = None,
    suite: dict[str, bytes] | None = None,
    reference: dict[str, bytes] | None = None,
    **tests: list[str],
) -> LoadedTask:
    """The sound task with some files and some roles of tests replaced. Visible tests change in every tree."""
    visible = {path: content for path, content in (suite or {}).items() if path in START}
    return LoadedTask(
        subject(tests=TESTS.model_copy(update=tests)).task,
        SourceTree({**START.files, **visible, **(start or {})}),
        SourceTree({**SUITE.files, **(suite or {})}),
        SourceTree({**REFERENCE.files, **visible, **(reference or {})}),
    )


_VISIBLE = "tests/test_add.py"
_MORE = b"""

def test_more():
    assert add(2, 2) == 4


def test_skipped():
    import pytest

    pytest.skip("no")


def test_easy():
    assert True
"""
_ROLES = _changed(
    suite={_VISIBLE: SUITE.files[_VISIBLE] + _MORE},
    fail_to_pass=[f"{_VISIBLE}::test_small", f"{_VISIBLE}::test_easy"],
    pass_to_pass=[f"{_VISIBLE}::test_{name}" for name in ("more", "skipped", "absent")],
)

BROKEN = {
    "tests whose role is not theirs": (
        _ROLES,
        [
            "pass_to_pass: tests/test_add.py::test_more (failed: NotImplementedError), tests/test_add.py::test_skipped "
            "(skipped: ",
            "tests/test_add.py::test_absent (missing: pytest did not find or did not report it) does not pass at the "
            "start: mend the starting tree, or take the test out of pass_to_pass",
            "fail_to_pass: tests/test_add.py::test_easy passes at the start already: move it to pass_to_pass",
            "tests/test_add.py::test_absent: pytest does not find it in tests/suite: correct the id in task.toml",
            "the reference does not pass tests/test_add.py::test_skipped (skipped: ",
        ],
    ),
    "a start of random bytes": (
        _changed(start={"add.py": bytes(range(255, 0, -1)) * 4}),
        ["environment/workspace/add.py, line 1: ", "an agent has to start from source that can be read"],
    ),
    "a reference with a syntax error": (
        _changed(reference={"add.py": b"def add(a, b):\n    return a +\n"}),
        ["the reference passed 0 of 1 runs: solution/files/add.py, line 2: invalid syntax (return a +)"],
    ),
    "a reference that changes nothing": (
        LoadedTask(subject().task, START, SUITE, START),
        ["the reference changes nothing: solution/files has the same files as environment/workspace"],
    ),
}


SLOW = ("a start of random bytes", "a reference that changes nothing")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in BROKEN]
)
def test_what_is_wrong_is_said_with_its_place_and_what_to_do(name: str, tmp_path: Path) -> None:
    broken, says = BROKEN[name]
    reasons = admitted(broken, tmp_path).reasons
    for text in says:
        assert any(text in reason for reason in reasons), reasons
    assert all("\n" not in reason for reason in reasons)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            _changed(start={"add.py": b"x = 1\0\n"}),
            "environment/workspace/add.py: not Python source: source code string cannot contain null",
        ),
        (
            _changed(start={"add.py": b"x = 1\ndef add(a b):\n    return a\n"}),
            "environment/workspace/add.py, line 2: invalid syntax (def add(a b):)",
        ),
        (
            _changed(suite={"tests/test_add_held_out.py": b"def test_large(:\n"}),
            "tests/suite/tests/test_add_held_out.py, line 1: invalid syntax",
        ),
    ],
    ids=["null bytes", "no Python", "a held-out test"],
)
def test_a_start_that_cannot_be_read_is_told_with_its_line(broken: LoadedTask, says: str) -> None:
    (found,) = find_unreadable_start(broken)
    assert str(found).startswith(says)


def test_a_pass_to_pass_test_that_is_flaky_at_the_start_is_told(sound: SoundTask) -> None:
    """It is told by its runs, which are given here: a coin would decide otherwise."""
    from gametape.redteam.admission_reasons import start_reasons
    from gametape.verify.grader_report import GradedVerdict

    flaky = _changed(pass_to_pass=[f"{_VISIBLE}::test_easy"], suite={_VISIBLE: SUITE.files[_VISIBLE] + _MORE})
    results = dict.fromkeys(flaky.task.tests.every, "failed")
    (reason,) = start_reasons(
        flaky, GradedVerdict(sound.result.untouched, [], [], results, flaky.task.tests.pass_to_pass)
    )  # type: ignore[arg-type]
    assert reason == (
        "pass_to_pass: tests/test_add.py::test_easy passes in one run at the start and not in another: "
        "mend or remove it"
    )


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfdef add(a, b):\r\n    raise NotImplementedError\r\n",
        b"# -*- coding: latin-1 -*-\nNAME = '\xe9'\n\n\ndef add(a, b):\n    raise NotImplementedError\n",
        b"def add(a, b):\r    raise NotImplementedError\r",
    ],
    ids=["byte order mark and CRLF", "declared encoding", "CR"],
)
def test_other_encodings_and_line_ends_are_fine(source: bytes) -> None:
    assert find_unreadable_start(_changed(start={"add.py": source})) == []


def test_files_that_are_wrong_on_purpose_are_left_alone() -> None:
    both = {"old.py": b"print 'two'\n", "tests/data/bad.py": b"def (:\n"}
    made = _changed(start=both, reference=both)
    assert find_unreadable_start(made) == []
    assert find_unreadable_reference(made) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["examples/tasks/slugs", "examples/tasks/cache-bug"])
def test_our_tasks_withstand_the_hack_suite(name: str, tmp_path: Path) -> None:
    result = admitted(load_task(ROOT / name), tmp_path, runs=3, hacks="all")
    assert result.reasons == []
    assert len(result.hacks) >= 60
