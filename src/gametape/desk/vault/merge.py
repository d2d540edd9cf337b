"""Two versions of a note, or of a whole vault, made into one without a line lost.

Where git's three-way merge finds no answer and both sides only added, both additions stay. Where that is not so either,
there is no merge: whoever asked keeps both versions.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from gametape.desk.vault.git import VaultGit
from gametape.desk.vault.note_files import ENDING
from gametape.desk.vault.repository import Files, GitTreeEntry, VaultRepository


def merge_texts(git: VaultGit, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """What both made of `base`; None where they contradict each other."""
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
    """What of `ours` changes to take in what `theirs` has made of `base`, and the paths where both contradict.

    Of those ours stays, and theirs goes beside it, named after `aside`, whose it is; a change then prevails over a
    removal. Without `aside` that too is a contradiction.
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
    """Where the version of somebody else is kept: a name that holds nothing yet, or just this."""
    ending = ENDING if path.endswith(ENDING) else ""
    stem = f"{path.removesuffix(ending)}-conflict-{owner}"
    candidate, number = f"{stem}{ending}", 1
    while candidate in files and files[candidate] != entry:
        number += 1
        candidate = f"{stem}-{number}{ending}"
    return candidate


def _only_added(base: bytes, changed: bytes) -> bool:
    """Whether every line of the one is in the other, in the same order."""
    lines = iter(changed.splitlines())
    return all(line in lines for line in base.splitlines())
