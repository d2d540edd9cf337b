"""The git repository that a workspace may call its own.

The author of a workspace may have made its `.git` as well, and could have it name another repository of the user, whose
history would then be shown, and in which a branch would be written. So a repository counts as the workspace's own only
if all that git reads of it lies in its own directory, as plain files without links. That directory lies in the
workspace, or it names the workspace as its work tree: something that only its owner can have written there.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.desk.host_git import GitError, HostGit

GIT_FILE = ".git"
_PARTS = (
    *("HEAD", "config", "config.worktree", "gitdir", "commondir", "packed-refs", "shallow", "index"),
    *("refs", "reftable", "objects", "logs"),
)
"""What git reads, or writes when it makes a branch."""
_FOLLOWED = ("info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout")
"""What may be a link, as nothing of it is shown, but must not block."""
_BORROWED = ("objects/info/alternates", "objects/info/http-alternates")
_MAX_FILE_BYTES = 65_536


class ForeignRepository(BadInput):
    """The workspace names a repository that is not its own. The message says why."""


def find_own_repository(workspace: Path) -> Path | None:
    """The root of the work tree that the workspace is in; None where there is no repository. Raises `ForeignRepository`
    for one that is not its own, and `MissingDependency` where git is not installed."""
    root = _root(Path(os.path.realpath(workspace)))
    if root is None:
        return None
    try:
        directory, common = _directories(root)
        for place in {directory, common}:
            _check_parts(place)
    except (OSError, ValueError) as error:
        raise ForeignRepository(f"{root / GIT_FILE} cannot be read: {error}") from error
    expected = [str(directory), str(common), str(common / "objects")]
    words = ("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--git-path", "objects")
    try:
        used = HostGit(workspace).text(*words).split("\n")
    except GitError:
        return None
    if [os.path.realpath(path) for path in used] != expected:
        raise ForeignRepository(f"git uses another repository than {root / GIT_FILE}")
    return root


def _root(workspace: Path) -> Path | None:
    """The directory whose `.git` git would find. On the way there it takes a directory that has the files of a
    repository for one."""
    for directory in (workspace, *workspace.parents):
        if os.path.lexists(directory / GIT_FILE):
            return directory
        head = directory / "HEAD"
        if os.path.lexists(head) and (
            not (head.is_file() or head.is_dir())
            or any(os.path.lexists(directory / name) for name in ("objects", "commondir"))
        ):
            raise ForeignRepository(f"{directory} has the files of a git repository outside of {GIT_FILE}")
    return None


def _directories(root: Path) -> tuple[Path, Path]:
    """The git directory of a work tree, and the one with the objects and branches, as absolute paths without links."""
    entry = root / GIT_FILE
    mode = entry.lstat().st_mode
    if stat.S_ISDIR(mode):
        _refuse_other_objects(entry)
        return entry, entry
    if not stat.S_ISREG(mode):
        raise ForeignRepository(f"{entry} is neither a directory nor a file")
    directory = _path_in(entry, root, "gitdir:")
    if directory.is_relative_to(root):
        _refuse_other_objects(directory)
        return directory, directory
    if os.path.lexists(directory / "commondir"):
        common = _path_in(directory / "commondir", directory)
        backlink = _path_in(directory / "gitdir", directory)
        if directory.parent != common / "worktrees" or backlink != entry:
            raise ForeignRepository(f"{entry} names {directory}, which does not know of this work tree")
        return directory, common
    if _work_tree_of(directory) != root:
        raise ForeignRepository(f"{entry} names {directory}, which does not know of this work tree")
    return directory, directory


def _refuse_other_objects(directory: Path) -> None:
    if os.path.lexists(directory / "commondir"):
        raise ForeignRepository(f"{directory}/commondir names another repository")


def _path_in(file: Path, base: Path, prefix: str = "") -> Path:
    """The path that a small plain file holds. It is relative to `base`, never to where this process happens to be."""
    _check_plain(file)
    with file.open("rb") as opened:
        said = os.fsdecode(opened.read(_MAX_FILE_BYTES)).strip("\r\n")
    if not said.startswith(prefix):
        raise ForeignRepository(f"{file} does not name a repository")
    return Path(os.path.realpath(os.path.join(base, said.removeprefix(prefix).strip(" "))))


def _work_tree_of(directory: Path) -> Path | None:
    """The work tree that a submodule's own settings name."""
    _check_plain(directory / "config")
    words = ("config", "--file", str(directory / "config"), "--no-includes", "--get", "core.worktree")
    code, printed = HostGit(Path("/")).ask(*words)
    if code != 0:
        return None
    return Path(os.path.realpath(os.path.join(directory, os.fsdecode(printed).removesuffix("\n"))))


def _check_plain(file: Path) -> None:
    if not stat.S_ISREG(file.lstat().st_mode):
        raise ForeignRepository(f"{file} is not a plain file")


def _check_parts(directory: Path) -> None:
    for name in _BORROWED:
        if os.path.lexists(directory / name):
            raise ForeignRepository(f"{directory / name} borrows the objects of another repository")
    for name in _PARTS:
        if os.path.lexists(directory / name):
            _check_tree(directory / name)
    for name in _FOLLOWED:
        path = directory / name
        if path.exists() and not path.is_file():
            raise ForeignRepository(f"{path} is not a plain file")


def _check_tree(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        for entry in _entries(path):
            if not entry.is_file(follow_symlinks=False):
                raise ForeignRepository(f"{entry.path} is a link or no plain file")
    elif not stat.S_ISREG(mode):
        raise ForeignRepository(f"{path} is a link or no plain file")


def _entries(directory: Path) -> Iterator["os.DirEntry[str]"]:
    """Everything below a directory but the directories themselves."""
    waiting = [os.fspath(directory)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry
