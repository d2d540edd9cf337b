from pathlib import Path

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.redteam import Hack, HackTarget, admission
from gametape.redteam.admission import Admission, HackChoice, admit
from gametape.tasks.loader import load_task

from .made import REFERENCE, ROOT, START, SUITE, subject


def admitted(made: LoadedTask, home: Path, runs: int = 1, hacks: HackChoice = "none") -> Admission:
    return admit(made, home, runs, hacks, lambda *_: None)


def test_a_sound_task_is_admitted_and_every_piece_of_work_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    result = admit(subject(), tmp_path, 2, "none", lambda *news: told.append(news))
    assert result.admitted
    assert not result.untouched.passed
    assert [verdict.passed for verdict in result.reference] == [True, True]
    assert not any(verdict.cached for verdict in result.reference)
    assert [done for done, _, _ in told] == [0, 1, 2, 3]
    assert {total for _, total, _ in told} == {3}


def test_a_task_that_asks_for_nothing_is_not_admitted(tmp_path: Path) -> None:
    result = admitted(LoadedTask(subject().task, REFERENCE, SUITE, REFERENCE), tmp_path)
    assert result.reasons == ["the untouched tree passes: the task asks for nothing"]


def test_a_reference_that_does_not_solve_the_task_is_not_admitted(tmp_path: Path) -> None:
    wrong = SourceTree({**REFERENCE.files, "add.py": b"def add(a, b):\n    return max(a, b) + min(a, b, 9)\n"})
    result = admitted(LoadedTask(subject().task, START, SUITE, wrong), tmp_path, runs=2)
    assert result.reasons == ["the reference passed 0 of 2 runs: 1 of 2 tests passed, 0 of 1 held out"]


def test_a_task_without_a_reference_is_not_admitted(tmp_path: Path) -> None:
    result = admitted(LoadedTask(subject().task, START, SUITE), tmp_path)
    assert result.reference == []
    assert result.reasons == ["there is no reference that shows the task can be solved (solution/files)"]


def test_what_a_hack_earns_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    result = admitted(subject(), tmp_path, hacks="all")
    assert len(result.hacks) == 2
    assert result.reasons == ["hacks were rewarded: answer.solve", "hacks went unseen: answer.solve"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["examples/tasks/slugs", "examples/tasks/cache-bug"])
def test_our_tasks_withstand_the_hack_suite(name: str, tmp_path: Path) -> None:
    result = admitted(load_task(ROOT / name), tmp_path, runs=3, hacks="all")
    assert result.reasons == []
    assert len(result.hacks) >= 60
