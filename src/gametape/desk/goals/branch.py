"""The result as a branch `gametape/goal-...`: a ref and its objects, made without touching a working tree, an index or
HEAD. In the workspace's own repository where it is one, else in one beside the goal.

The branch stands on the commit that was checked out when the goal was taken up. What had not been committed then comes
first, as a commit of its own, so that the second one is the agent's work alone. Made twice, it is the same branch.
"""

import hashlib
import tempfile
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.host_git import host_git
from gametape.record.source_tree import SourceTree

_ZERO = "0" * 40


def head_of(workspace: Path) -> str | None:
    """The commit that a workspace stands on; None where it is no git repository, or has no commit yet."""
    try:
        return _git(workspace, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
    except (BadInput, FileNotFoundError):
        return None


def make_branch(place: GoalDirectory, goal: Goal, start: SourceTree, delivered: SourceTree, subject: str) -> str | None:
    """Its name; None where nothing is different, or where there is no git."""
    if start == delivered:
        return None
    name = f"gametape/{goal.goal_id}"
    try:
        if goal.head:
            repository = _Repository(Path(goal.workspace), place.root, goal.created)
            base = repository.with_uncommitted(goal.head, start)
        else:
            place.repository.mkdir(exist_ok=True)
            _git(place.repository, "init", "--quiet", "--bare")
            repository = _Repository(place.repository, place.root, goal.created)
            base = repository.commit(None, SourceTree(), start, "The workspace as it was")
        commit = repository.commit(base, start, delivered, subject)
        _git(repository.directory, "update-ref", f"refs/heads/{name}", commit)
    except FileNotFoundError:
        return None
    return name


class _Repository:
    def __init__(self, directory: Path, scratch: Path, when: float) -> None:
        self.directory, self._scratch = directory, scratch
        self._prefix = _git(directory, "rev-parse", "--show-prefix").strip("\n")
        date = f"{int(when)} +0000"
        who = {"NAME": "gametape", "EMAIL": "gametape@localhost", "DATE": date}
        self._who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}

    def with_uncommitted(self, head: str, start: SourceTree) -> str:
        """A commit of what differs from `head` and is not ignored; `head` itself where nothing does."""
        listed = _git(self.directory, "ls-tree", "-r", "-z", "--full-tree", head).split("\0")
        known = {line.partition("\t")[2]: line.split()[2] for line in listed if line}
        ignored = self._ignored([path for path in start if self._prefix + path not in known])
        same = [path for path in start if known.get(self._prefix + path) == _object_id(start.files[path])]
        changed = start.without({*ignored, *same})
        return self.commit(head, SourceTree(), changed, "What had not been committed") if changed.files else head

    def commit(self, parent: str | None, before: SourceTree, after: SourceTree, message: str) -> str:
        """The parent's tree with the files of `after` that differ from `before`, and without those that are gone."""
        lines = [f"0 {_ZERO}\t{self._prefix}{path}" for path in before if path not in after]
        for path, content in after.files.items():
            runs = path in after.executable
            if before.files.get(path) != content or runs != (path in before.executable):
                blob = _git(self.directory, "hash-object", "-w", "--stdin", data=content).strip()
                lines.append(f"{'100755' if runs else '100644'} {blob}\t{self._prefix}{path}")
        with tempfile.TemporaryDirectory(dir=self._scratch) as scratch:
            index = {"GIT_INDEX_FILE": f"{scratch}/index"}
            _git(self.directory, "read-tree", parent or "--empty", env=index)
            told = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
            _git(self.directory, "update-index", "-z", "--index-info", data=told, env=index)
            tree = _git(self.directory, "write-tree", env=index).strip()
        parents = ("-p", parent) if parent else ()
        return _git(self.directory, "commit-tree", tree, *parents, "-m", message, env=self._who).strip()

    def _ignored(self, paths: list[str]) -> list[str]:
        if not paths:
            return []
        told = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        return _git(self.directory, "check-ignore", "-z", "--stdin", data=told, fine=(0, 1)).split("\0")


def _object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _git(
    directory: Path, *arguments: str, data: bytes = b"", env: dict[str, str] | None = None, fine: tuple[int, ...] = (0,)
) -> str:
    done = host_git(directory, *arguments, data=data, env=env)
    if done.returncode not in fine:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BadInput(f"git {arguments[0]} failed in {directory}: {said[-1] if said else done.returncode}")
    return done.stdout.decode("utf-8", "surrogateescape")
