"""What people did with the work: written into trajectories, and read from a repository's history."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.feedback import Feedback
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.feedback import add_feedback, kept_share, parse_additions, patch_survival
from gametape.record.journal import Journal
from gametape.record.source_tree import SourceTree
from gametape.record.trajectory_file import load_trajectory, save_trajectory
from gametape.verify.git_patch import make_git_patch

_BEFORE = "def total(prices):\n    return 0\n"
_AFTER = (
    "def total(prices):\n    tax = 2\n    return sum(prices) + tax\n\n\ndef count(prices):\n    return len(prices)\n"
)
_KEPT = Feedback(kind="kept", time="2026-11-15T10:00:00+00:00", note="fine")


def _trajectory() -> Trajectory:
    return Trajectory.model_validate(
        {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "trajectory_id": "t",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": "do"}],
            "extra": {"theirs": 1},
        }
    )


def test_it_is_added_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    save_trajectory(path, _trajectory())
    add_feedback(path, _KEPT)
    output = add_feedback(path, Feedback(kind="reverted", time="2026-11-16T10:00:00+00:00"))
    assert [one.kind for one in output] == ["kept", "reverted"]
    extra = load_trajectory(path).extra or {}
    assert extra["theirs"] == 1
    assert extra["feedback"][0] == {"kind": "kept", "time": "2026-11-15T10:00:00+00:00", "note": "fine"}


def test_a_journal_takes_it_and_goes_on_but_not_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    with Journal.create(path, _trajectory()), pytest.raises(BadInput):
        add_feedback(path, _KEPT)
    add_feedback(path, _KEPT)
    with Journal.open(path) as journal:
        journal.append(Step.model_validate({"step_id": 2, "source": "agent", "message": "done"}))
        closed = journal.close()
    assert (load_trajectory(closed).extra or {})["feedback"][0]["kind"] == "kept"
    assert len(load_trajectory(closed).steps) == 2


def test_the_share_of_a_patch_that_is_left() -> None:
    patch = make_git_patch(SourceTree({"shop.py": _BEFORE.encode()}), SourceTree({"shop.py": _AFTER.encode()}))
    added = parse_additions(patch)
    assert added.lines["shop.py"].total() == 4
    before = {"shop.py": _counts(_BEFORE)}
    assert kept_share(added.lines, before, {"shop.py": _counts(_AFTER)}) == 1.0
    assert kept_share(added.lines, before, before) == 0.0
    assert kept_share(added.lines, before, {"shop.py": _counts(_AFTER.replace("tax = 2", "tax = 3"))}) == 0.75
    assert kept_share(added.lines, before, {}) == 0.0


def _counts(text: str) -> Counter[str]:
    return Counter(line for line in text.splitlines() if line.strip())


def test_what_became_of_it_some_commits_later(tmp_path: Path) -> None:
    def commit(text: str) -> str:
        (tmp_path / "shop.py").write_text(text)
        _git(tmp_path, "add", "-A")
        _git(tmp_path, "commit", "-qm", "change")
        return _git(tmp_path, "rev-parse", "HEAD").strip()

    patch = make_git_patch(SourceTree({"shop.py": _BEFORE.encode()}), SourceTree({"shop.py": _AFTER.encode()}))
    _git(tmp_path, "init", "-q")
    commit(_BEFORE)
    assert patch_survival(patch, tmp_path) is None
    landed = commit(_AFTER)
    commit(_AFTER + "\n\nMORE = 1\n")
    found = patch_survival(patch, tmp_path)
    assert found is not None
    assert (found.commit, found.commits_since, found.share) == (landed, 1, 1.0)
    commit(_AFTER.partition("\n\n\ndef count")[0] + "\n")
    half = patch_survival(patch, tmp_path)
    assert half is not None
    assert half.share == 0.5
    commit(_BEFORE)
    gone = patch_survival(patch, tmp_path)
    assert gone is not None
    assert (gone.commit, gone.commits_since, gone.share) == (landed, 3, 0.0)


def _git(directory: Path, *words: str) -> str:
    base = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", "-C", str(directory)]
    return subprocess.run([*base, *words], capture_output=True, text=True, check=True).stdout
