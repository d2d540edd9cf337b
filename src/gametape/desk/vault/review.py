"""Reviewing a vault: what changed since a person last accepted it, accepting notes, and reverting changes.

`refs/gametape/reviewed` is a commit whose tree is what was accepted; accepting one note changes that note alone in it.
A revert is a new commit. No commit is ever rewritten.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from gametape.core.errors import BadInput
from gametape.desk.vault.merge import merge_files
from gametape.desk.vault.note_files import note_name, note_path
from gametape.desk.vault.repository import Commit, Files, GitTreeEntry, VaultRepository, list_commits
from gametape.desk.vault.vault import Vault

MARK = "refs/gametape/reviewed"


class NoteChange(NamedTuple):
    """A note that differs from its accepted version: its diff, and the commits since, the newest first. `version`
    stands for exactly this change: from which content to which."""

    note: str
    diff: tuple[str, ...]
    commits: tuple[Commit, ...]
    version: str


class UnseenChange(BadInput):
    """A note is not, or not any more, as the person who decides has seen it. Nothing was changed."""


def review(vault: Vault) -> list[NoteChange]:
    """Every note that differs from its accepted version, sorted by name."""
    repository = vault.repository
    with repository.locked():
        before, now = _accepted_files(repository), repository.files(repository.head)
        commits = list_commits(repository, f"{MARK}..HEAD")
    return [
        NoteChange(
            note,
            _diff(repository, path, before.get(path), now.get(path)),
            _commits_of(path, commits),
            _version(path, before, now),
        )
        for path in sorted({*before, *now})
        if (note := note_name(path)) and before.get(path) != now.get(path)
    ]


def accept(vault: Vault, names: Sequence[str] = (), seen: Mapping[str, str] | None = None) -> list[str]:
    """Accept the present version of notes, or of all if none is named; returns those that had changed.

    With `seen`, which has the `version` of each note that a person was shown, raises `UnseenChange` where one of them
    is another by now.
    """
    repository = vault.repository
    with repository.locked():
        head = repository.head
        before, now = _accepted_files(repository), repository.files(head)
        differing = [path for path in sorted({*before, *now}) if before.get(path) != now.get(path)]
        wanted = {_path(vault, name, {*before, *now}) or _refuse_unknown(name) for name in names}
        selected = [path for path in differing if path in wanted] if names else differing
        _refuse_unseen(wanted if names else selected, before, now, seen)
        mark = repository.resolve(MARK)
        if not selected or head is None or mark is None:
            return []
        moved = head
        if set(differing) != set(selected):
            tree = repository.write_tree(mark, {path: now.get(path) for path in selected})
            names_text = ", ".join(path.removesuffix(".md") for path in selected)
            moved = repository.bare_commit(tree, f"Accepted: {names_text}\n", [mark])
        repository.git("update-ref", MARK, moved, mark)
    return [note for path in selected if (note := note_name(path))]


def revert(vault: Vault, target: str, seen: str | None = None) -> Commit:
    """Undo a commit, or all changes to a note since it was accepted, with a new commit.

    Raises `BadInput` where there is nothing to undo, or where later changes depend on it; with `seen`, the `version` of
    a note that a person was shown, `UnseenChange` where it is another by now.
    """
    repository = vault.repository
    with repository.locked():
        now = repository.files(repository.head)
        before = _accepted_files(repository)
        path = _path(vault, target, {*before, *now})
        if path is not None:
            _refuse_unseen([path], before, now, None if seen is None else {path.removesuffix(".md"): seen})
            if now.get(path) == before.get(path):
                raise BadInput(f"{target}: as it was accepted; name a commit to take back an older change")
            name, changes = path.removesuffix(".md"), {path: before.get(path)}
        else:
            if seen is not None:
                raise UnseenChange(f"{target}: no note that you saw; look at it again")
            commit = repository.resolve(target) or _refuse_unknown(target)
            name, changes = f"commit {commit[:10]}", _undo_changes(repository, commit, now)
        repository.commit(changes, f"{name}: taken back\n")
        return list_commits(repository, "-1", "HEAD")[0]


def _undo_changes(repository: VaultRepository, commit: str, now: Files) -> dict[str, GitTreeEntry | None]:
    """The changes that undo a commit and keep everything that came later."""
    parents = repository.git("rev-list", "--parents", "-n1", commit).decode().split()[1:]
    if len(parents) != 1:
        raise BadInput(f"{commit[:10]}: a merge or the first commit; take back the commits that it brought")
    if not repository.is_ancestor(commit, "HEAD"):
        raise BadInput(f"{commit[:10]}: not in the history of this vault's branch")
    changes, conflicts = merge_files(
        repository, repository.files(commit), now, repository.files(parents[0]), aside=None
    )
    if conflicts:
        note = conflicts[0].removesuffix(".md")
        raise BadInput(f"{commit[:10]}: {note} was changed since at the same place; edit it by hand")
    if not changes:
        raise BadInput(f"{commit[:10]}: nothing of it is left to take back")
    return changes


def _version(path: str, before: Files, now: Files) -> str:
    return "..".join(f"{entry.mode}:{entry.id}" if entry else "none" for entry in (before.get(path), now.get(path)))


def _refuse_unseen(paths: Iterable[str], before: Files, now: Files, seen: Mapping[str, str] | None) -> None:
    if seen is None:
        return
    for path in paths:
        note = path.removesuffix(".md")
        if seen.get(note) != _version(path, before, now):
            raise UnseenChange(f"{note}: was changed since you saw it; look at it again")


def _accepted_files(repository: VaultRepository) -> Files:
    return repository.files(repository.resolve(MARK))


def _path(vault: Vault, name: str, known: set[str]) -> str | None:
    """The path of a note that exists, or did."""
    exact = note_path(name.removesuffix(".md"))
    if exact in known:
        return exact
    try:
        path = note_path(vault.resolve_name(name))
    except BadInput:
        return None
    return path if path in known else None


def _refuse_unknown(name: str) -> NoReturn:
    raise BadInput(f"{name}: neither a note nor a commit of this vault")


def _diff(
    repository: VaultRepository, path: str, before: GitTreeEntry | None, now: GitTreeEntry | None
) -> tuple[str, ...]:
    """The diff without its header."""
    old, new = (repository.content(entry).decode("utf-8", "replace").splitlines() for entry in (before, now))
    return tuple(list(difflib.unified_diff(old, new, path, path, lineterm="", n=2))[2:])


def _commits_of(path: str, commits: Sequence[Commit]) -> tuple[Commit, ...]:
    return tuple(commit for commit in commits if path in commit.paths)
