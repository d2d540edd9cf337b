"""A workspace has the history and the branches of its own repository alone, whatever its `.git` says."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gametape.desk.goals.branch import head_of, make_branch, repository_problem
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.goals.history import copy_history
from gametape.desk.own_repository import ForeignRepository, find_own_repository
from gametape.record.source_tree import SourceTree

_GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "init.defaultBranch=main")
_START, _AFTER = SourceTree({"a.py": b"1\n"}), SourceTree({"a.py": b"2\n"})


def git(directory: Path, *words: str) -> str:
    command = [*_GIT, "-c", "protocol.file.allow=always", "-C", directory, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def make_repository(directory: Path, content: str = "1\n") -> Path:
    directory.mkdir()
    git(directory, "init", "-q")
    (directory / "a.py").write_text(content)
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "one")
    return directory


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "private", "secret\n")


def _fake_work_tree(commondir: str, gitdir: str = ".git") -> Callable[[Path, Path], None]:
    def make(workspace: Path, private: Path) -> None:
        (workspace / ".git").write_text("gitdir: .vcs\n")
        (workspace / ".vcs").mkdir()
        (workspace / ".vcs/HEAD").write_text("ref: refs/heads/main\n")
        (workspace / ".vcs/gitdir").write_text(f"{gitdir.format(workspace=workspace)}\n")
        (workspace / ".vcs/commondir").write_text(f"{commondir.format(private=private)}\n")

    return make


def _chain(workspace: Path, private: Path) -> None:
    """The directory that `.git` names is a link into a directory beside the workspace."""
    beside = workspace.parent / "beside"
    _fake_work_tree("{private}/.git", "{workspace}/.git")(workspace, private)
    (workspace / ".vcs").rename(beside)
    (workspace / ".vcs").symlink_to(beside)


def _beside(workspace: Path, private: Path) -> None:
    """A repository beside the workspace, by the same author, knows of the work tree but not of the objects."""
    _chain(workspace, private)
    (workspace / ".git").write_text("gitdir: ../beside\n")


def _claimed_submodule(workspace: Path, private: Path) -> None:
    (workspace / ".git").write_text(f"gitdir: {private}/.git\n")


def _other_work_tree(workspace: Path, private: Path) -> None:
    git(private, "worktree", "add", "-q", "--detach", str(workspace.parent / "tree"))
    shutil.copy(workspace.parent / "tree/.git", workspace / ".git")


def _linked(name: str, to: str) -> Callable[[Path, Path], None]:
    def make(workspace: Path, private: Path) -> None:
        git(workspace, "init", "-q")
        link = workspace / ".git" / name
        if link.is_dir():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(to.format(private=private))

    return make


def _linked_git(workspace: Path, private: Path) -> None:
    (workspace / ".git").symlink_to(private / ".git")


def _alternates(name: str, said: str) -> Callable[[Path, Path], None]:
    def make(workspace: Path, private: Path) -> None:
        git(workspace, "init", "-q")
        (workspace / ".git/objects/info").mkdir(exist_ok=True)
        (workspace / ".git/objects/info" / name).write_text(said.format(private=private) + "\n")
        (workspace / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD") + "\n")

    return make


def _link_through_the_directory_of_git(workspace: Path, private: Path) -> None:
    _linked("refs/heads/main", "{private}/.git/refs/heads/main")(workspace, private)
    (workspace / ".alt").write_text(f"{private}/.git/objects\n")
    (workspace / ".git/objects/info").mkdir(exist_ok=True)
    (workspace / ".git/objects/info/alternates").symlink_to("/proc/self/cwd/.alt")


def _linked_pack(workspace: Path, private: Path) -> None:
    git(private, "repack", "-adq")
    git(workspace, "init", "-q")
    for path in (private / ".git/objects/pack").iterdir():
        (workspace / ".git/objects/pack" / path.name).symlink_to(path)
    (workspace / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD") + "\n")


def _linked_object(workspace: Path, private: Path) -> None:
    shutil.copytree(private / ".git", workspace / ".git")
    loose = next(path for path in (workspace / ".git/objects").glob("??/*"))
    loose.unlink()
    loose.symlink_to(private / ".git/objects" / loose.parent.name / loose.name)


def _own_commondir(workspace: Path, private: Path) -> None:
    git(workspace, "init", "-q")
    (workspace / ".git/commondir").write_text(f"{private}/.git\n")


def _bare(workspace: Path, private: Path) -> None:
    (workspace / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace / "commondir").write_text(f"{private}/.git\n")


def _fifo(name: str) -> Callable[[Path, Path], None]:
    def make(workspace: Path, private: Path) -> None:
        shutil.copytree(private / ".git", workspace / ".git")
        (workspace / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(workspace / ".git" / name)

    return make


_HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    "commondir": _fake_work_tree("{private}/.git"),
    "commondir-relative": _fake_work_tree("../../private/.git"),
    "commondir-backlink": _fake_work_tree("{private}/.git", "{workspace}/.git"),
    "commondir-in-git": _own_commondir,
    "gitdir-chain": _chain,
    "gitdir-beside": _beside,
    "gitdir-other": _claimed_submodule,
    "gitdir-work-tree": _other_work_tree,
    "git-link": _linked_git,
    "alternates": _alternates("alternates", "{private}/.git/objects"),
    "alternates-relative": _alternates("alternates", "../../../private/.git/objects"),
    "http-alternates": _alternates("http-alternates", "http://127.0.0.1/objects"),
    "alternates-cwd": _link_through_the_directory_of_git,
    "refs-link": _linked("refs", "{private}/.git/refs"),
    "refs-deep-link": _linked("refs/heads/deep/er", "{private}/.git/refs/heads"),
    "refs-name": _linked("refs/heads/a\nb\udcff", "{private}/.git/refs"),
    "objects-link": _linked("objects", "{private}/.git/objects"),
    "head-link": _linked("HEAD", "{private}/.git/HEAD"),
    "packed-refs-link": _linked("packed-refs", "{private}/.git/packed-refs"),
    "config-link": _linked("config", "{private}/.git/config"),
    "logs-link": _linked("logs/refs/heads/gametape", "{private}"),
    "pack-link": _linked_pack,
    "object-link": _linked_object,
    "bare": _bare,
    "head-fifo": _fifo("HEAD"),
    "config-fifo": _fifo("config"),
    "exclude-fifo": _fifo("info/exclude"),
}


def _state(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", _HOSTILE)
def test_another_repository_is_neither_shown_nor_written(
    name: str, tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(tmp_path if name == "alternates-cwd" else workspace)
    head = git(private, "rev-parse", "HEAD")
    _HOSTILE[name](workspace, private)
    before = _state(private)
    with pytest.raises(ForeignRepository):
        find_own_repository(workspace)
    assert head_of(workspace) is None
    assert not copy_history(workspace, head, tmp_path / "history.git")
    assert not (tmp_path / "history.git").exists()
    goal = _goal(workspace, head)
    directory = GoalDirectory(tmp_path / "goal")
    directory.root.mkdir()
    branch = make_branch(directory, goal, _START, _AFTER, "two")
    assert branch is not None
    assert branch.repository == directory.repository
    assert git(directory.repository, "show", f"{branch.name}:a.py") == "2"
    assert _state(private) == before
    problem = repository_problem(workspace)
    assert len(problem.splitlines()) == 1
    assert problem.encode()


def test_an_empty_git_directory_does_not_lead_to_the_repository_above(private: Path) -> None:
    workspace = private / "download"
    (workspace / ".git").mkdir(parents=True)
    with pytest.raises(ForeignRepository, match="another repository"):
        find_own_repository(workspace)
    assert head_of(workspace) is None


def _goal(workspace: Path, head: str | None) -> Goal:
    return Goal(
        goal_id="goal-1",
        workspace=str(workspace),
        success="x",
        model="x",
        instruction="x",
        created=1_763_200_000.0,
        head=head,
    )


def _plain(own: Path) -> Path:
    return own


def _work_tree(own: Path) -> Path:
    git(own, "worktree", "add", "-q", "--detach", str(own.parent / "tree"))
    return own.parent / "tree"


def _nested_work_tree(own: Path) -> Path:
    git(own, "worktree", "add", "-q", "-b", "other", "trees/nested")
    return own / "trees/nested"


def _relative_work_tree(own: Path) -> Path:
    tree = _work_tree(own)
    (tree / ".git").write_text("gitdir: ../own/.git/worktrees/tree\n")
    (own / ".git/worktrees/tree/gitdir").write_text("../../../../tree/.git\n")
    return tree


def _submodule(own: Path) -> Path:
    above = make_repository(own.parent / "above")
    git(above, "submodule", "--quiet", "add", str(own), "part")
    return above / "part"


def _linked_exclude(own: Path) -> Path:
    (own.parent / "exclude").write_text("*.log\n")
    (own / ".git/info/exclude").unlink(missing_ok=True)
    (own / ".git/info").mkdir(exist_ok=True)
    (own / ".git/info/exclude").symlink_to(own.parent / "exclude")
    return own


def _directory_inside(own: Path) -> Path:
    (own / ".git").rename(own / ".bare")
    (own / ".git").write_text("gitdir: ./.bare\n")
    return own


def _through_a_link(own: Path) -> Path:
    (own.parent / "link").symlink_to(own)
    return own.parent / "link"


@pytest.mark.parametrize(
    "make",
    [
        *(_plain, _work_tree, _nested_work_tree, _relative_work_tree, _submodule, _linked_exclude, _directory_inside),
        _through_a_link,
    ],
)
def test_a_repository_of_its_own_is_read_and_gets_the_branch(make: Callable[[Path], Path], tmp_path: Path) -> None:
    own = make_repository(tmp_path / "own")
    head = git(own, "rev-parse", "HEAD")
    workspace = make(own)
    assert head_of(workspace) == head
    assert copy_history(workspace, head, tmp_path / "history.git")
    directory = GoalDirectory(tmp_path / "goal")
    directory.root.mkdir()
    branch = make_branch(directory, _goal(workspace, head), _START, _AFTER, "two")
    assert branch is not None
    assert (branch.repository, branch.problem, repository_problem(workspace)) == (workspace, "", "")
    assert git(workspace, "show", f"{branch.name}:a.py") == "2"


def test_a_part_of_a_repository_gets_the_branch_and_no_history(tmp_path: Path) -> None:
    own = make_repository(tmp_path / "own")
    (own / "part").mkdir()
    directory = GoalDirectory(tmp_path / "goal")
    directory.root.mkdir()
    head = head_of(own / "part")
    assert head
    assert not copy_history(own / "part", head, tmp_path / "history.git")
    branch = make_branch(directory, _goal(own / "part", head), _START, _AFTER, "two")
    assert branch is not None
    assert git(own, "show", f"{branch.name}:part/a.py") == "2"


def test_a_commit_that_is_gone_leaves_the_branch_beside_the_goal(tmp_path: Path) -> None:
    own = make_repository(tmp_path / "own")
    directory = GoalDirectory(tmp_path / "goal")
    directory.root.mkdir()
    branch = make_branch(directory, _goal(own, "1" * 40), _START, _AFTER, "two")
    assert branch is not None
    assert branch.repository == directory.repository
    assert "could not be made" in branch.problem
