"""The git repository of a vault: one writer at a time, commits that survive a kill, and a person's edits first.

A commit is made in this order: write the objects, write pending.json with the changes, move the branch, write the
files, delete pending.json. After a kill in between, the next writer either finds no commit or writes the missing files.
"""

import getpass
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationError

from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.desk.host_git import blob_id
from gametape.desk.vault.git import VaultGit
from gametape.desk.vault.note_files import note_name, read_notes, read_regular_file
from gametape.record.atomic import write_atomically
from gametape.record.directory_walk import make_directories
from gametape.record.errors import printable_path
from gametape.record.installation import command_line
from gametape.record.lock import locked

AGENT = "gametape"
_FILE_MODES = ("100644", "100755")
_GIT_OPERATIONS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
_ZERO_ID = "0" * 40


class GitTreeEntry(NamedTuple):
    """The mode and blob id of a path in a tree."""

    mode: str
    id: str


Files = dict[str, GitTreeEntry]
Changes = Mapping[str, GitTreeEntry | None]
"""The new entry of each changed path; None removes it."""


ObjectId = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


class PendingCommit(StrictModel):
    """What `pending.json` holds: the old and the new blob of each path; None where there is no file."""

    commit: ObjectId
    paths: dict[str, tuple[ObjectId | None, ObjectId | None]]


@dataclass(frozen=True)
class VaultRepository:
    root: Path

    @property
    def git(self) -> VaultGit:
        return VaultGit(self.root)

    @property
    def state_directory(self) -> Path:
        """The directory for the lock, the pending commit and the read log."""
        return self.root / ".git" / "gametape"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the vault against other writers, after committing what a killed writer has left and what a person has
        edited."""
        self.state_directory.mkdir(exist_ok=True)
        with locked(self.state_directory / "lock"):
            self._refuse_unfinished()
            self._finish_pending()
            self._commit_edits()
            yield

    # Reading

    def resolve(self, name: str) -> str | None:
        """The commit id of a revision, or None."""
        if name.startswith("-"):
            return None
        code, commit = self.git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return commit.decode().strip() if code == 0 else None

    @property
    def head(self) -> str | None:
        return self.resolve("HEAD")

    def files(self, commit: str | None) -> Files:
        """Every file of a commit, without links and submodules."""
        if commit is None:
            return {}
        files: Files = {}
        for line in self.git("ls-tree", "-r", "-z", commit).split(b"\0"):
            if line:
                fields, path = line.split(b"\t", 1)
                mode, _, name = fields.decode().split(" ")
                if mode in _FILE_MODES:
                    files[path.decode("utf-8", "surrogateescape")] = GitTreeEntry(mode, name)
        return files

    def content(self, entry: GitTreeEntry | None) -> bytes:
        return self.git("cat-file", "blob", entry.id) if entry else b""

    def has(self, blob: str) -> bool:
        return self.git.ask("cat-file", "-t", blob) == (0, b"blob\n")

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.git.ask("merge-base", "--is-ancestor", older, newer)[0] == 0

    # Writing

    def store_blob(self, content: bytes) -> GitTreeEntry:
        """Store content as a blob that nothing refers to yet."""
        return GitTreeEntry(_FILE_MODES[0], self.git.text("hash-object", "-w", "--stdin", data=content))

    def write_tree(self, base: str | None, changes: Changes) -> str:
        """Write the tree of a commit with some paths changed, and return its id."""
        index = {"GIT_INDEX_FILE": str(self.state_directory / "index")}
        self.git("read-tree", base or "--empty", env=index)
        lines = (_index_line(path, entry) for path, entry in changes.items())
        self.git("update-index", "-z", "--index-info", data=b"".join(lines), env=index)
        return self.git.text("write-tree", env=index)

    def commit(self, changes: Changes, message: str, author: str = AGENT, parents: Sequence[str] = ()) -> str:
        """Commit changes to the branch, with further `parents` for a merge. Only within `locked`."""
        head = self.head
        tree = self.write_tree(head, changes)
        commit_id = self.bare_commit(tree, message, [*([head] if head else []), *parents], author)
        self._move_branch(head, commit_id, changes)
        return commit_id

    def advance(self, commit: str) -> None:
        """Fast-forward the branch to a later commit. Only within `locked`."""
        head = self.head
        before, after = self.files(head), self.files(commit)
        paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        self._move_branch(head, commit, {path: after.get(path) for path in paths})

    def bare_commit(self, tree: str, message: str, parents: Sequence[str], author: str = AGENT) -> str:
        """Make a commit without moving the branch."""
        person = {f"GIT_{role}_{what}": name for role in ("AUTHOR", "COMMITTER") for what, name in _identity(author)}
        words = [word for parent in parents for word in ("-p", parent)]
        return self.git.text("commit-tree", tree, *words, data=message.encode(), env=person)

    # Internal

    def _move_branch(self, head: str | None, commit_id: str, changes: Changes) -> None:
        for path in changes:
            self._refuse_unsafe(path)
        before = self.files(head)
        todo = {path: (_id(before.get(path)), _id(entry)) for path, entry in changes.items()}
        write_atomically(self._pending, json.dumps({"commit": commit_id, "paths": todo}).encode())
        self.git("update-ref", "HEAD", commit_id, head or _ZERO_ID)
        self._finish_pending()

    @property
    def _pending(self) -> Path:
        return self.state_directory / "pending.json"

    def _finish_pending(self) -> None:
        """Write the files of a pending commit if the branch was moved; a person's edit since then stays."""
        with suppress(FileNotFoundError):
            data = self._pending.read_bytes()
            try:
                pending = PendingCommit.model_validate_json(data)
            except ValidationError:
                why = "is not what a commit leaves; see that the notes are right, then delete it"
                raise BadInput(f"{printable_path(self._pending)}: {why}") from None
            for path in pending.paths:
                self._refuse_unsafe(path)
            head = self.head
            if head and self.is_ancestor(pending.commit, head):
                for path, (old, new) in pending.paths.items():
                    self._write_file(path, old, new)
                self.git("read-tree", "HEAD")
            self._pending.unlink()

    def _write_file(self, path: str, old: str | None, new: str | None) -> None:
        target = self.root / path
        if _blob_id(target) != old:
            return
        if new is None:
            target.unlink(missing_ok=True)
            return
        make_directories(target.parent)
        write_atomically(target, self.git("cat-file", "blob", new))

    def _commit_edits(self) -> None:
        """Commit what a person has edited, in their name."""
        known = {path: entry for path, entry in self.files(self.head).items() if note_name(path) is not None}
        notes = read_notes(self.root)
        changes: dict[str, GitTreeEntry | None] = {}
        for path, content in notes.items():
            if path not in known or known[path].id != blob_id(content):
                changes[path] = GitTreeEntry(
                    known[path].mode if path in known else _FILE_MODES[0], self.store_blob(content).id
                )
        changes |= {path: None for path in known if path not in notes and not os.path.lexists(self.root / path)}
        if changes:
            named = ", ".join(sorted(path.removesuffix(".md") for path in changes)[:3])
            more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
            self.commit(changes, f"{named}{more}: edited by hand\n", author=_person())

    def _refuse_unsafe(self, path: str) -> None:
        """Refuse a path that leads out of the vault: another machine's tree may contain anything."""
        target = self.root
        for part in path.split("/"):
            if part.lower() in ("", ".", "..", ".git") or "\0" in part:
                raise BadInput(f"{path!r} is not a path in a vault")
            target = target / part
            if target.is_symlink():
                raise BadInput(f"{target} is a link, and a vault follows none; put a file or a directory there")

    def _refuse_unfinished(self) -> None:
        if any((self.git.git_directory / name).exists() for name in _GIT_OPERATIONS):
            raise BadInput(f"{self.root}: a merge or the like is under way in this vault; finish it with git first")


def create_repository(root: Path, files: Mapping[str, bytes], message: str) -> VaultRepository:
    """The repository in this directory; one that does not exist, or whose creation was cut off, is created with a first
    commit."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{root}: no vault can be made here: {error.strerror}") from None
    repository = VaultRepository(root.resolve())
    if repository.git.ask("rev-parse", "--git-dir")[0] != 0:
        repository.git("init", "--quiet", "--template=", "--initial-branch=main", str(repository.root))
    with repository.locked():
        missing = {
            path: repository.store_blob(content) for path, content in files.items() if not (root / path).exists()
        }
        if repository.resolve("refs/gametape/reviewed") is None:
            first = repository.commit(missing, message)
            repository.git("update-ref", "refs/gametape/reviewed", first)
    return repository


def open_repository(root: Path) -> VaultRepository:
    repository = VaultRepository(root.resolve())
    if not repository.git.git_directory.is_dir():
        raise BadInput(f"{root}: no vault here; type: {command_line('vault', 'init', '--vault', root)}")
    if repository.head is None:
        raise BadInput(f"{root}: this vault has no commit yet; type: {command_line('vault', 'init', '--vault', root)}")
    return repository


def _index_line(path: str, entry: GitTreeEntry | None) -> bytes:
    mode, name = entry or GitTreeEntry("0", _ZERO_ID)
    return f"{mode} {name}\t".encode() + path.encode("utf-8", "surrogateescape") + b"\0"


def _id(entry: GitTreeEntry | None) -> str | None:
    return entry.id if entry else None


def _blob_id(target: Path) -> str | None:
    """The blob id of a file's content; None where nothing exists, and an empty text where it is not a file."""
    content = read_regular_file(target)
    if content is not None:
        return blob_id(content)
    return "" if os.path.lexists(target) else None


def _identity(name: str) -> tuple[tuple[str, str], ...]:
    return ("NAME", name), ("EMAIL", f"{name}@localhost")


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


_TRAILERS = "%(trailers:key=Gametape-Thread,valueonly)%x00%(trailers:key=Gametape-Turn,valueonly)"
_LOG_FORMAT = f"%H%x00%at%x00%an%x00%s%x00{_TRAILERS}%x00"


class Commit(NamedTuple):
    id: str
    time: int
    who: str
    """The thread that wrote it, or the person."""
    turn: int | None
    subject: str
    paths: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.id[:10]

    @property
    def author_text(self) -> str:
        """The author, with the turn if there is one."""
        return self.who if self.turn is None else f"{self.who}, turn {self.turn}"


def list_commits(repository: VaultRepository, *revisions: str) -> list[Commit]:
    """The commits of a revision range, the newest first, each with the paths it changed; a merge has none."""
    mark = secrets.token_hex(16)  # no commit from another machine can have it in its subject
    log = repository.git("log", f"--format={mark}{_LOG_FORMAT}", "-z", "--name-only", "--no-renames", *revisions)
    return [_commit(part) for part in log.decode("utf-8", "surrogateescape").split(mark) if part]


def _commit(text: str) -> Commit:
    name, time, author, subject, thread, turn, *paths = text.split("\0")
    thread, turn = thread.strip(), turn.strip()
    return Commit(
        id=name,
        time=int(time),
        who=thread or author,
        turn=int(turn) if turn.isdecimal() else None,
        subject=subject,
        paths=tuple(path for path in (path.strip("\n") for path in paths) if path),
    )
