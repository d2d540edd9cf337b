"""Merges two versions of a note, or of a whole vault, without losing a line.

Where git's three-way merge has a conflict and both sides only added lines, both additions stay. Otherwise there is no
merge, and the caller keeps both versions.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from gametape.desk.vault.git import VaultGit
from gametape.desk.vault.note_files import ENDING
from gametape.desk.vault.repository import Files, GitTreeEntry, VaultRepository


def merge_texts(git: VaultGit, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The merge of both versions; None where they conflict."""
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    if b"\0" in base + ours + theirs:
        return None
    with tempfile.TemporaryDirectory(prefix="gametape-merge-") as scratch:
        names = []
        for name, content in (("ours", ours), ("base", base), ("theirs", theirs)):
            (Path(scratch) / name).write_bytes(content)
            names.append(str(Path(scratch) / name))
        conflicts, merged = git.ask("merge-file", "-p", "-q", *names)
        if conflicts == 0:
            return merged
        if not (_only_added(base, ours) and _only_added(base, theirs)):
            return None
        failed, merged = git.ask("merge-file", "-p", "-q", "--union", *names)
        return None if failed else merged


def merge_files(
    repository: VaultRepository, base: Files, ours: Files, theirs: Files, aside: str | None
) -> tuple[dict[str, GitTreeEntry | None], list[str]]:
    """The changes to `ours` that take in what `theirs` changed since `base`, and the paths with conflicts.

    In a conflict ours stays, and theirs is stored beside it under a name with `aside`, its owner; a change then wins
    over a removal. Without `aside` that too is a conflict.
    """
    changes: dict[str, GitTreeEntry | None] = {}
    conflicts = []
    for path in sorted({*base, *ours, *theirs}):
        base_entry, our_entry, their_entry = base.get(path), ours.get(path), theirs.get(path)
        if their_entry in (our_entry, base_entry):
            continue
        if our_entry == base_entry:
            changes[path] = their_entry
            continue
        if our_entry is None or their_entry is None:
            if aside is None:
                conflicts.append(path)
            elif our_entry is None:
                changes[path] = their_entry
            continue
        merged = merge_texts(repository.git, *map(repository.content, (base_entry, our_entry, their_entry)))
        if merged is not None:
            changes[path] = GitTreeEntry(our_entry.mode, repository.store_blob(merged).id)
            continue
        conflicts.append(path)
        if aside is not None:
            changes[conflict_path(path, aside, their_entry, {**theirs, **ours, **changes})] = their_entry
    return changes, conflicts


def conflict_path(path: str, owner: str, entry: GitTreeEntry, files: Mapping[str, GitTreeEntry | None]) -> str:
    """The path for another's version: one that is free, or that already holds this version."""
    ending = ENDING if path.endswith(ENDING) else ""
    stem = f"{path.removesuffix(ending)}-conflict-{owner}"
    candidate, number = f"{stem}{ending}", 1
    while candidate in files and files[candidate] != entry:
        number += 1
        candidate = f"{stem}-{number}{ending}"
    return candidate


def _only_added(base: bytes, changed: bytes) -> bool:
    """Whether every line of `base` is in `changed`, in the same order."""
    lines = iter(changed.splitlines())
    return all(line in lines for line in base.splitlines())
