"""The git history of a workspace, copied for an agent to read.

The workspace's repository may have been prepared by somebody else, so nothing of it is used but objects: those that the
commit which is checked out leads to. Branches, tags, stashes, reflogs, hooks, remotes and settings stay behind, and the
copy has settings of its own. The host never runs git in it again; the agent's sandbox sees it read-only.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gametape.core.errors import MissingDependency
from gametape.desk.host_git import GitError, HostGit
from gametape.desk.own_repository import GIT_FILE, ForeignRepository, find_own_repository
from gametape.record.errors import OutOfDiskSpace
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.snapshots.cleanup import remove_tree

ENVIRONMENT = (
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    ("GIT_OPTIONAL_LOCKS", "0"),
)
"""What git inside the sandbox needs to read a repository that belongs to another user and cannot be written."""
MAX_BYTES = 64 << 20
_DEPTHS = (2_000, 300, 50, 1)
"""How many commits are copied: the first of these that stays below `MAX_BYTES`."""
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}")
_WITHOUT_SUBSTITUTES = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}


class _BoundedGit(HostGit):
    max_seconds: ClassVar[float] = 60.0


def copy_history(workspace: Path, head: str | None, target: Path) -> bool:
    """Copy what leads to the commit `head` into a bare repository at `target`. Returns False, and leaves nothing there,
    where there is no history to copy: no repository of its own, objects that are missing, elsewhere or too large."""
    if head is None or not _is_own_root(workspace):
        return False
    source = _BoundedGit(workspace)
    try:
        commits = _commits(source, head)
        if commits is None:
            return False
        target.mkdir()
        _write_copy(source, _BoundedGit(target), target, head, commits)
    except (GitError, MissingDependency):
        remove_tree(target)
        return False
    except OutOfDiskSpace:
        remove_tree(target)
        raise
    return True


def git_file(history: Path) -> bytes:
    """The file that makes the agent's workspace a work tree of the copy."""
    return f"gitdir: {history}\n".encode()


def is_git_file(workspace: Path, history: Path) -> bool:
    """Whether the workspace's `.git` is the file that was put there for the copy."""
    entry = workspace / GIT_FILE
    return entry.is_file() and not entry.is_symlink() and entry.read_bytes() == git_file(history.absolute())


def _is_own_root(workspace: Path) -> bool:
    """Whether the workspace is the root of a repository of its own."""
    try:
        return find_own_repository(workspace) == Path(os.path.realpath(workspace))
    except (ForeignRepository, MissingDependency):
        return False


def _commits(git: HostGit, head: str) -> dict[str, list[str]] | None:
    """The commits to copy with their parents; None where even the last one is too large."""
    for depth in _DEPTHS:
        selection = (f"--max-count={depth}", head, "--")
        try:
            size = int(git.text("rev-list", "--objects", "--disk-usage", *selection, env=_WITHOUT_SUBSTITUTES))
        except GitError:  # it took too long, or objects are missing; fewer commits may do
            continue
        if size <= MAX_BYTES:
            listed = git.text("rev-list", "--parents", *selection, env=_WITHOUT_SUBSTITUTES).splitlines()
            return {commit: parents for commit, *parents in map(str.split, listed)}
    return None


def _write_copy(source: HostGit, copy: HostGit, target: Path, head: str, commits: Mapping[str, list[str]]) -> None:
    depth = f"--max-count={len(commits)}"
    objects = source("rev-list", "--objects", "--no-object-names", depth, head, "--", env=_WITHOUT_SUBSTITUTES)
    pack = source("pack-objects", "--stdout", "-q", "--threads=1", data=objects, env=_WITHOUT_SUBSTITUTES)
    copy("init", "--quiet", "--bare", "--template=")
    copy("index-pack", "--stdin", data=pack)
    shallow = source.text("rev-parse", "--is-shallow-repository") == "true"
    cut = [
        commit
        for commit, parents in commits.items()
        if any(parent not in commits for parent in parents) or (shallow and not parents)
    ]
    if cut:
        (target / "shallow").write_text("".join(f"{commit}\n" for commit in cut))
    branch = source.ask("symbolic-ref", "--quiet", "--short", "HEAD")[1].decode("utf-8", "replace").strip()
    ref = f"refs/heads/{branch if _BRANCH.fullmatch(branch) and '..' not in branch else 'main'}"
    copy("update-ref", ref, head)
    copy("symbolic-ref", "HEAD", ref)
    copy("read-tree", "HEAD")
    for name, value in (("core.bare", "false"), ("core.worktree", WORKSPACE), ("core.logAllRefUpdates", "false")):
        copy("config", name, value)
