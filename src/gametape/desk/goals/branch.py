"""The result as a branch `gametape/goal-...`: a ref and its objects, without touching a working tree, an index or HEAD.

The branch is made in the workspace's own repository, or in one beside the goal where the workspace has none, or where
git fails in it. It starts at the commit that was checked out when the goal was created. What had not been committed
then is a commit of its own, so that the second commit is the agent's work alone. Made twice, it is the same branch.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import MissingDependency
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.host_git import GitError, HostGit, blob_id
from gametape.desk.own_repository import ForeignRepository, find_own_repository
from gametape.record.source_tree import SourceTree

_ZERO = "0" * 40


@dataclass(frozen=True)
class GoalBranch:
    """A branch, the repository that has it, and why that is not the workspace's."""

    name: str
    repository: Path
    problem: str = ""


def head_of(workspace: Path) -> str | None:
    """The commit that is checked out in a workspace; None where it has no git repository of its own or no commit."""
    try:
        if find_own_repository(workspace) is None:
            return None
        return HostGit(workspace).text("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except (ForeignRepository, GitError, MissingDependency):
        return None


def repository_problem(workspace: Path) -> str:
    """Why the repository that the workspace names is not used; empty where nothing speaks against it."""
    try:
        find_own_repository(workspace)
    except ForeignRepository as error:
        reason = " ".join(os.fsencode(str(error)).decode("utf-8", "replace").split())
        return f"the workspace's git repository is not used, neither its history nor for the branch: {reason}"
    except MissingDependency:
        return ""
    return ""


def make_branch(
    directory: GoalDirectory, goal: Goal, start: SourceTree, delivered: SourceTree, subject: str
) -> GoalBranch | None:
    """Make the branch; None where nothing changed, or where git is not installed."""
    if start == delivered:
        return None
    name, workspace, problem = f"gametape/{goal.goal_id}", Path(goal.workspace), ""
    try:
        if goal.head and not repository_problem(workspace):
            try:
                repository = _Repository(workspace, directory.root, goal.created)
                repository.branch(name, repository.with_uncommitted(goal.head, start), start, delivered, subject)
                return GoalBranch(name, workspace)
            except GitError as error:
                problem = f"the branch could not be made in the workspace's repository: {error}"
        directory.repository.mkdir(exist_ok=True)
        HostGit(directory.repository)("init", "--quiet", "--bare")
        repository = _Repository(directory.repository, directory.root, goal.created)
        base = repository.commit(None, SourceTree(), start, "The workspace as it was")
        repository.branch(name, base, start, delivered, subject)
    except MissingDependency:
        return None
    return GoalBranch(name, directory.repository, problem)


class _Repository:
    def __init__(self, directory: Path, scratch: Path, when: float) -> None:
        self.git, self._scratch = HostGit(directory), scratch
        self._prefix = self.git.text("rev-parse", "--show-prefix")
        date = f"{int(when)} +0000"
        who = {"NAME": "gametape", "EMAIL": "gametape@localhost", "DATE": date}
        self._who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}

    def with_uncommitted(self, head: str, start: SourceTree) -> str:
        """A commit of what differs from `head` and is not ignored; `head` itself where nothing does."""
        listed = self.git.text("ls-tree", "-r", "-z", "--full-tree", head).split("\0")
        known = {line.partition("\t")[2]: line.split()[2] for line in listed if line}
        ignored = self._ignored([path for path in start if self._prefix + path not in known])
        same = [path for path in start if known.get(self._prefix + path) == blob_id(start.files[path])]
        changed = start.without({*ignored, *same})
        return self.commit(head, SourceTree(), changed, "What had not been committed") if changed.files else head

    def branch(self, name: str, base: str, start: SourceTree, delivered: SourceTree, subject: str) -> None:
        self.git("update-ref", f"refs/heads/{name}", self.commit(base, start, delivered, subject))

    def commit(self, parent: str | None, before: SourceTree, after: SourceTree, message: str) -> str:
        """The parent's tree with the files of `after` that differ from `before`, and without those that are gone."""
        lines = [f"0 {_ZERO}\t{self._prefix}{path}" for path in before if path not in after]
        for path, content in after.files.items():
            runs = path in after.executable
            if before.files.get(path) != content or runs != (path in before.executable):
                blob = self.git.text("hash-object", "-w", "--stdin", data=content)
                lines.append(f"{'100755' if runs else '100644'} {blob}\t{self._prefix}{path}")
        with tempfile.TemporaryDirectory(dir=self._scratch) as scratch:
            index = {"GIT_INDEX_FILE": f"{scratch}/index"}
            self.git("read-tree", parent or "--empty", env=index)
            self.git("update-index", "-z", "--index-info", data=_terminated(lines), env=index)
            tree = self.git.text("write-tree", env=index)
        parents = ("-p", parent) if parent else ()
        return self.git.text("commit-tree", tree, *parents, "-m", message, env=self._who)

    def _ignored(self, paths: list[str]) -> list[str]:
        if not paths:
            return []
        code, ignored = self.git.ask("check-ignore", "-z", "--stdin", data=_terminated(paths))
        if code not in (0, 1):
            raise GitError(self.git.directory, ("check-ignore",), f"exit code {code}")
        return ignored.decode("utf-8", "surrogateescape").split("\0")


def _terminated(lines: list[str]) -> bytes:
    return "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
