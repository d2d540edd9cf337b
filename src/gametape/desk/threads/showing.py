"""What a person sees of threads: a line for each, the words of one, what it made of its files."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gametape.agent.recording import final_metrics, spent_in
from gametape.desk.threads.answers import is_answer, key_of
from gametape.desk.threads.thread import Thread, ThreadPlace, names, place_of
from gametape.desk.vault.names import content_of
from gametape.record.journal import Journal
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.sandbox.snapshots.sweep import remove_tree
from gametape.verify.patch import unified
from gametape.verify.tree import Tree

_MOST_FILES = 5_000
_LEFT_OUT = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".git")


class Listed(NamedTuple):
    """A thread and what it has come to."""

    thread: Thread
    said: int
    answered: int
    turns: int
    tokens: int
    cost_usd: float
    last: float
    """When something was last recorded."""


def listed(home: Path) -> list[Listed]:
    """Every thread, the one that was last active first."""
    return sorted((looked_at(place_of(home, name)) for name in names(home)), key=lambda one: -one.last)


def looked_at(place: ThreadPlace) -> Listed:
    thread, steps = place.read(), place.recorded().steps
    spent = spent_in(steps)
    times = [datetime.fromisoformat(step.timestamp).timestamp() for step in steps if step.timestamp]
    return Listed(
        thread=thread,
        said=sum(key_of(step) is not None for step in steps),
        answered=sum(is_answer(step) for step in steps),
        turns=spent.turns,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        last=max([thread.created, *times[-1:]]),
    )


def archive(place: ThreadPlace) -> Path:
    """Close a thread: its record becomes one ATIF file, and nothing more is said to it. Done twice it is done once."""
    if place.trajectory == place.journal:
        with Journal.open(place.journal) as journal:
            place.change(archived=True)
            steps = journal.trajectory.steps
            journal.close(final_metrics=final_metrics(spent_in(steps), len(steps)))
    if not place.read().archived:
        place.change(archived=True)
    return place.trajectory


def patch(place: ThreadPlace) -> str:
    """What is different about the files since the thread began, in git's format; what tools leave behind is left out,
    and so are links and what is huge."""
    thread, steps = place.read(), place.recorded().steps
    checkpoints = [step.ours.checkpoint for step in steps if step.ours.checkpoint]
    with SnapshotStore(place.store_of(thread)) as store:
        changed = [path for path in store.diff(checkpoints[0], checkpoints[-1]) if _is_shown(path)]
        before, after = (_tree(store, name, changed[:_MOST_FILES]) for name in (checkpoints[0], checkpoints[-1]))
    return unified(before, after)


def _tree(store: SnapshotStore, snapshot: str, paths: list[str]) -> Tree:
    scratch = Path(tempfile.mkdtemp(prefix="gametape-patch-"))
    try:
        store.export(snapshot, scratch / "tree")
        files: dict[str, bytes] = {}
        executable = set()
        for path in paths:
            place = scratch / "tree" / path
            content = None if _through_link(scratch / "tree", path) else content_of(place)
            if content is not None:
                files[path] = content
                if os.stat(place).st_mode & 0o111:
                    executable.add(path)
        return Tree(files, frozenset(executable))
    finally:
        remove_tree(scratch)


def _through_link(root: Path, path: str) -> bool:
    place = root
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink():
            return True
    return False


def _is_shown(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not any(part in _LEFT_OUT for part in path.split("/"))
