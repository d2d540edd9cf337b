"""The git history that an agent may read: what is in the copy, what is not, and that nothing of the original acts."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.constraints import Constraints
from gametape.desk.goals import history
from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.branch import head_of
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.goals.goal_request import write_goal
from gametape.record.trajectory_file import load_trajectory
from gametape.tasks.mining.project_layout.source_reader import read_project_source
from tests.desk.goals.shop import DONE, MENDED, PRODUCT, SUCCESS, call, lay, script, write
from tests.desk.goals.test_job import _run

_GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "init.defaultBranch=main")


def git(directory: Path, *words: str, env: dict[str, str] | None = None) -> str:
    environment = {**os.environ, **(env or {})}
    done = subprocess.run([*_GIT, "-C", directory, *words], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def commit(directory: Path, subject: str) -> str:
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", subject)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits on main, and things that are not reachable from it: a branch with the answer, a stash, a tag."""
    where = tmp_path / "workspace"
    lay(where)
    git(where, "init", "-q")
    commit(where, "First light")
    (where / "shop.py").write_text(MENDED)
    answer = commit(where, "The answer")
    git(where, "branch", "future")
    git(where, "tag", "v2")
    git(where, "reset", "-q", "--hard", "HEAD~1")
    (where / "shop.py").write_text(PRODUCT + "# stashed\n")
    git(where, "stash", "-q")
    (where / "notes.txt").write_text("one\n")
    commit(where, "Take notes")
    (where / "notes.txt").write_text("one\ntwo\n")
    commit(where, "Take more notes")
    (where / "answer.id").write_text(answer)
    (where / ".git/info/exclude").write_text("answer.id\n")
    return where


def test_only_what_leads_to_the_head_is_copied(tmp_path: Path, repository: Path) -> None:
    target = tmp_path / "history.git"
    assert history.copy_history(repository, head_of(repository), target)
    assert git(target, "log", "--format=%s").split("\n") == ["Take more notes", "Take notes", "First light"]
    assert git(target, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    ids = git(target, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    everything = git(repository, "rev-list", "--objects", "--no-object-names", "HEAD").split()
    assert sorted(ids) == sorted(set(everything))
    assert (repository / "answer.id").read_text() not in ids
    assert not (target / "logs").exists()
    assert not (target / "hooks").exists()
    assert "remote" not in (target / "config").read_text()


def test_settings_and_hooks_of_the_original_neither_act_nor_come_along(tmp_path: Path, repository: Path) -> None:
    ran = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {ran}\n")
    trap.chmod(0o755)
    for name in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        hook = repository / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(trap.read_text())
        hook.chmod(0o755)
    for name, value in (
        ("core.fsmonitor", str(trap)),
        ("core.sshCommand", str(trap)),
        ("core.alternateRefsCommand", str(trap)),
        ("uploadpack.packObjectsHook", str(trap)),
        ("remote.origin.url", f"ext::{trap}"),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("credential.helper", str(trap)),
        ("filter.x.clean", str(trap)),
    ):
        git(repository, "config", name, value)
    head = (repository / ".git/refs/heads/main").read_text().strip()
    target = tmp_path / "history.git"
    assert history.copy_history(repository, head, target)
    assert not ran.exists()
    assert str(trap) not in (target / "config").read_text()


def test_a_workspace_that_names_another_repository_shows_nothing_of_it(tmp_path: Path, repository: Path) -> None:
    head, target = head_of(repository), tmp_path / "history.git"
    claims = tmp_path / "claims"
    lay(claims)
    (claims / ".git").write_text(f"gitdir: {repository}/.git\n")
    assert not history.copy_history(claims, head, target)
    (claims / ".git").unlink()
    (claims / ".git").symlink_to(repository / ".git")
    assert not history.copy_history(claims, head, target)
    (claims / ".git").unlink()
    git(claims, "init", "-q")
    (claims / ".git/objects/info").mkdir(exist_ok=True)
    (claims / ".git/objects/info/alternates").write_text(f"{repository}/.git/objects\n")
    assert not history.copy_history(claims, head, target)
    assert not target.exists()


def test_a_work_tree_that_its_repository_knows_of_has_its_history(tmp_path: Path, repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD")
    assert history.copy_history(tmp_path / "tree", head_of(repository), tmp_path / "history.git")
    assert git(tmp_path / "history.git", "log", "-1", "--format=%s") == "Take more notes"


def test_a_large_or_shallow_history_is_cut_and_can_still_be_read(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repository}", "shallow")
    shallow = tmp_path / "shallow"
    assert history.copy_history(shallow, head_of(shallow), tmp_path / "first.git")
    assert git(tmp_path / "first.git", "log", "--format=%s").split("\n") == ["Take more notes", "Take notes"]
    monkeypatch.setattr(history, "_DEPTHS", (1,))
    assert history.copy_history(repository, head_of(repository), tmp_path / "second.git")
    assert git(tmp_path / "second.git", "log", "--format=%s") == "Take more notes"
    git(tmp_path / "second.git", "fsck", "--strict")
    monkeypatch.setattr(history, "MAX_BYTES", 10)
    assert not history.copy_history(repository, head_of(repository), tmp_path / "third.git")


def test_missing_objects_and_plain_directories_have_none(tmp_path: Path, repository: Path) -> None:
    assert not history.copy_history(lay(tmp_path / "plain"), None, tmp_path / "a.git")
    head = head_of(repository)
    blob = git(repository, "rev-parse", "HEAD:notes.txt")
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert not history.copy_history(repository, head, tmp_path / "b.git")
    assert not (tmp_path / "b.git").exists()


@pytest.fixture
def goal(tmp_path: Path, repository: Path, baseline: GoalBaseline) -> Callable[..., tuple[Path, GoalDirectory]]:
    def make(turns: tuple[dict[str, Any], ...], **wished: Any) -> tuple[Path, GoalDirectory]:
        asked = Goal(
            goal_id="goal-20261115-000000",
            workspace=str(repository),
            success=SUCCESS,
            model=script(tmp_path / "turns.jsonl", turns),
            created=1_763_200_000.0,
            instruction="Mend the sum.",
            head=head_of(repository),
            **wished,
        )
        return tmp_path / "home", write_goal(tmp_path / "home", asked, read_project_source(repository), baseline)

    return make


def test_the_agent_of_a_goal_reads_it_and_cannot_write_it(
    repository: Path, goal: Callable[..., tuple[Path, GoalDirectory]]
) -> None:
    look = "git log --format=%s; git show --stat HEAD; git blame -s notes.txt; git status --short; git branch -a"
    home, place = goal(
        (
            call("shell", command=look),
            call("shell", command="git commit --allow-empty -m x; git rev-list --all --count; git stash list"),
            call("history", what="show", commit="HEAD~1"),
            call("shell", command="cd /tmp && git init -q other && cd other && git status"),
            write("shop.py", MENDED),
            DONE,
        )
    )
    answer = _run(home, place)
    assert answer["reached"], json.dumps(answer)
    shown = [
        str(result.content)
        for step in load_trajectory(Path(answer["trajectory"])).steps
        for result in (step.observation.results if step.observation else [])
    ]
    assert "Take more notes\nTake notes\nFirst light\n" in shown[0]
    assert "notes.txt | 1 +" in shown[0]
    assert " 2) two" in shown[0]
    assert "* main" in shown[0]
    assert "future" not in shown[0]
    assert "Read-only file system" in shown[1] or "read-only" in shown[1].lower()
    assert shown[1].startswith("3\n")
    assert "Take notes" in shown[2]
    assert "No commits yet" in shown[3], "a repository of the agent's own is not disturbed"
    assert ".git" not in Path(answer["patch"]).read_text()
    assert ".git" not in Path(answer["summary"]).read_text()
    assert not (place.workspace / ".git").exists()
    assert git(repository, "show", f"{answer['branch']}:shop.py") + "\n" == MENDED


def test_history_could_show_what_may_not_be_read_so_there_is_none(
    goal: Callable[..., tuple[Path, GoalDirectory]],
) -> None:
    _, place = goal((DONE,), constraints=Constraints(unreadable=["secrets/**"]))
    assert not place.history.exists()
