"""Listing, archiving and comparing threads, for a person to read."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gametape.agent.record_digest import RecordDigest
from gametape.agent.recorder import final_metrics
from gametape.desk.threads.thread import Thread, ThreadDirectory, thread_directory, thread_ids
from gametape.desk.threads.thread_record import thread_digest
from gametape.desk.vault.note_files import read_regular_file
from gametape.record.journal import Journal
from gametape.record.source_tree import SourceTree
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.git_patch import make_git_patch

_MAX_FILES = 5_000
_SKIPPED_NAMES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".git")


class ThreadSummary(NamedTuple):
    """A thread and its counts."""

    thread: Thread
    said: int
    answered: int
    turns: int
    tokens: int
    cost_usd: float
    last: float
    """When something was last recorded."""


def list_threads(home: Path) -> list[ThreadSummary]:
    """Every thread, the one that was last active first."""
    return sorted(
        (summarize_thread(thread_directory(home, name)) for name in thread_ids(home)), key=lambda summary: -summary.last
    )


def summarize_thread(directory: ThreadDirectory) -> ThreadSummary:
    thread, digest = directory.read(), thread_digest(directory)
    last = [datetime.fromisoformat(digest.last).timestamp()] if digest.last else []
    return ThreadSummary(
        thread=thread,
        said=digest.messages,
        answered=digest.answers,
        turns=digest.usage.turns,
        tokens=digest.usage.tokens,
        cost_usd=digest.usage.cost_usd,
        last=max([thread.created, *last]),
    )


def archive_thread(directory: ThreadDirectory) -> Path:
    """Close a thread: its record becomes one ATIF file, and it takes no more messages. Repeating it changes nothing."""
    if directory.trajectory == directory.journal:
        with Journal.open(directory.journal) as journal:
            directory.update(archived=True)
            digest = RecordDigest.of(journal.steps)
            finished = journal.close(final_metrics=final_metrics(digest.usage, digest.steps))
            directory.digest_file.save_finished(digest, finished)
    if not directory.read().archived:
        directory.update(archived=True)
    return directory.trajectory


def thread_patch(directory: ThreadDirectory) -> str:
    """The changes to the files since the thread began, in git's format, without caches, links and huge files."""
    thread, steps = directory.read(), directory.load_trajectory().steps
    checkpoints = [step.gametape_extra.checkpoint for step in steps if step.gametape_extra.checkpoint]
    with SnapshotStore(directory.store_of(thread)) as store:
        changed = [path for path in store.diff(checkpoints[0], checkpoints[-1]) if _is_shown(path)]
        before, after = (_tree(store, name, changed[:_MAX_FILES]) for name in (checkpoints[0], checkpoints[-1]))
    return make_git_patch(before, after)


def _tree(store: SnapshotStore, snapshot: str, paths: list[str]) -> SourceTree:
    scratch = Path(tempfile.mkdtemp(prefix="gametape-patch-"))
    try:
        store.export(snapshot, scratch / "tree")
        files: dict[str, bytes] = {}
        executable = set()
        for path in paths:
            file = scratch / "tree" / path
            content = None if _through_link(scratch / "tree", path) else read_regular_file(file)
            if content is not None:
                files[path] = content
                if os.stat(file).st_mode & 0o111:
                    executable.add(path)
        return SourceTree(files, frozenset(executable))
    finally:
        remove_tree(scratch)


def _through_link(root: Path, path: str) -> bool:
    directory = root
    for part in path.split("/")[:-1]:
        directory = directory / part
        if directory.is_symlink():
            return True
    return False


def _is_shown(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not any(part in _SKIPPED_NAMES for part in path.split("/"))
