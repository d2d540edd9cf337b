"""What people did with the work: written into trajectories, and read from a repository's history."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.feedback import Feedback
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.feedback import added_in, give, kept_share, survival
from gametape.record.files import load, save
from gametape.record.journal import Journal
from gametape.verify.patch import unified
from gametape.verify.tree import Tree

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
    save(path, _trajectory())
    give(path, _KEPT)
    told = give(path, Feedback(kind="reverted", time="2026-11-16T10:00:00+00:00"))
    assert [one.kind for one in told] == ["kept", "reverted"]
    extra = load(path).extra or {}
    assert extra["theirs"] == 1
    assert extra["feedback"][0] == {"kind": "kept", "time": "2026-11-15T10:00:00+00:00", "note": "fine"}


def test_a_journal_takes_it_and_goes_on_but_not_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    with Journal.create(path, _trajectory()), pytest.raises(BadInput):
        give(path, _KEPT)
    give(path, _KEPT)
    with Journal.open(path) as journal:
        journal.append(Step.model_validate({"step_id": 2, "source": "agent", "message": "done"}))
        closed = journal.close()
    assert (load(closed).extra or {})["feedback"][0]["kind"] == "kept"
    assert len(load(closed).steps) == 2


def test_the_share_of_a_patch_that_is_left() -> None:
    patch = unified(Tree({"shop.py": _BEFORE.encode()}), Tree({"shop.py": _AFTER.encode()}))
    added = added_in(patch)
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

    patch = unified(Tree({"shop.py": _BEFORE.encode()}), Tree({"shop.py": _AFTER.encode()}))
    _git(tmp_path, "init", "-q")
    commit(_BEFORE)
    assert survival(patch, tmp_path) is None
    landed = commit(_AFTER)
    commit(_AFTER + "\n\nMORE = 1\n")
    found = survival(patch, tmp_path)
    assert found is not None
    assert (found.commit, found.commits_since, found.share) == (landed, 1, 1.0)
    commit(_AFTER.partition("\n\n\ndef count")[0] + "\n")
    half = survival(patch, tmp_path)
    assert half is not None
    assert half.share == 0.5
    commit(_BEFORE)
    gone = survival(patch, tmp_path)
    assert gone is not None
    assert (gone.commit, gone.commits_since, gone.share) == (landed, 3, 0.0)


def _git(directory: Path, *words: str) -> str:
    base = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", "-C", str(directory)]
    return subprocess.run([*base, *words], capture_output=True, text=True, check=True).stdout
