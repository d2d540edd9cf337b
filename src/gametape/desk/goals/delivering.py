"""What is handed over: the best state among the tests and configuration that it was judged with, and nothing else."""

from dataclasses import replace
from pathlib import Path

from gametape.tasks.deletion.finding.suites import pytest_settings
from gametape.verify.export import export
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree

_MIXED = ("pyproject.toml", "setup.cfg", "tox.ini")
"""Files in which the runner's configuration stands beside other things."""


def delivered(subject: Subject, workspace: Path, pinned: Tree) -> tuple[Tree, list[str]]:
    """The tree to hand over, and the files whose changes are left out: tests that were there, what configures their
    runner, what else is pinned, and what is no source at all. New test files go along."""
    everything = replace(subject, task=subject.task.model_copy(update={"test_paths": []}))
    attempt = export(everything, workspace)
    start, kept_as_it_was = subject.start, pinned.over(subject.suite)
    kept = {path for path in _MIXED if path in attempt.workspace and _same_settings(start, attempt.workspace, path)}
    tree = kept_as_it_was.over(attempt.workspace.only(kept).over(attempt.sources))
    tree = tree.without(_repositories(tree) - set(start))
    touched = {path for path in (*attempt.written, *attempt.removed) if not _is_cache(path)}
    same = {path for path in touched if tree.files.get(path) == attempt.workspace.files.get(path)}
    return tree, sorted(touched - same)


def _repositories(tree: Tree) -> set[str]:
    """What would make git take a directory for a repository, whose configuration names programs to run."""
    heads = (path for path in tree if path.rpartition("/")[2].lower() == "head")
    bare = (path for path in heads if _is_bare(tree, path.rpartition("/")[0]))
    return {*bare, *(path for path in tree if any(map(_is_git, path.split("/"))))}


def _is_bare(tree: Tree, directory: str) -> bool:
    above = f"{directory}/" if directory else ""
    inner = {path[len(above) :].partition("/")[0].lower() for path in tree if path.startswith(above)}
    return {"objects", "refs"} <= inner


def _is_git(part: str) -> bool:
    """Whether some file system takes a name for `.git`."""
    plain = "".join(char for char in part if char.isprintable()).lower()
    return any(one.partition(":")[0].rstrip(" .") in (".git", "git~1") for one in plain.split("\\"))


def _same_settings(start: Tree, workspace: Tree, path: str) -> bool:
    return pytest_settings(workspace.only({path}).over(start)) == pytest_settings(start)


def _is_cache(path: str) -> bool:
    return any(part in ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache") for part in path.split("/"))
