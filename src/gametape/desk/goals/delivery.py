"""What a goal delivers: the tree to hand over, its text for a pull request, and applying it to the workspace."""

import os
import secrets
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.desk.goals.attempt_text import count_text
from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.line_counts import count_changed_lines
from gametape.record.directory_walk import make_directories
from gametape.record.errors import write_error
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.project_layout.suite_discovery import pytest_settings
from gametape.verify.submission import read_submission

_SHARED_CONFIG_FILES = ("pyproject.toml", "setup.cfg", "tox.ini")
"""Files that hold the pytest configuration beside other things."""


def deliverable_tree(
    task: LoadedTask,
    workspace: Path,
    pinned: SourceTree,
    taken_away: Collection[str] = (),
    followed: Collection[str] = (),
) -> tuple[SourceTree, list[str]]:
    """The tree to hand over, and the files whose changes are left out: existing tests, the test configuration, other
    pinned files, files that the judge took away, and what is no source. New test files are included, and files of the
    tests that follow a move of the product."""
    everything = replace(task, task=task.task.model_copy(update={"test_paths": []}))
    attempt = read_submission(everything, workspace)
    start, files = task.start, attempt.workspace
    config = {path for path in _SHARED_CONFIG_FILES if path in files and _same_settings(start, files, path)}
    suite = files.only({*followed}).overlaid_on(task.suite)
    tree = pinned.overlaid_on(suite).overlaid_on(files.only(config).overlaid_on(attempt.sources))
    tree = tree.without(_git_repository_files(tree) - set(start)).without({*taken_away})
    touched = {path for path in (*attempt.changed_files, *attempt.removed_files) if not _is_cache(path)}
    same = {path for path in touched if tree.files.get(path) == files.files.get(path)}
    return tree, sorted(touched - same)


def _git_repository_files(tree: SourceTree) -> set[str]:
    """Files that would make git treat a directory as a repository, whose configuration can name programs to run."""
    heads = (path for path in tree if path.rpartition("/")[2].lower() == "head")
    bare = (path for path in heads if _is_bare(tree, path.rpartition("/")[0]))
    return {*bare, *(path for path in tree if any(map(_is_git, path.split("/"))))}


def _is_bare(tree: SourceTree, directory: str) -> bool:
    above = f"{directory}/" if directory else ""
    inner = {path[len(above) :].partition("/")[0].lower() for path in tree if path.startswith(above)}
    return {"objects", "refs"} <= inner


def _is_git(part: str) -> bool:
    """Whether any file system would treat this name as `.git`."""
    printable = "".join(char for char in part if char.isprintable()).lower()
    return any(name.partition(":")[0].rstrip(" .") in (".git", "git~1") for name in printable.split("\\"))


def _same_settings(start: SourceTree, workspace: SourceTree, path: str) -> bool:
    return pytest_settings(workspace.only({path}).overlaid_on(start)) == pytest_settings(start)


def _is_cache(path: str) -> bool:
    return any(part in ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache") for part in path.split("/"))


_MAX_NAMED, _MAX_PINNED = 5, 30


def apply_result(workspace: Path, start: SourceTree, delivered: SourceTree) -> list[str]:
    """Write the result into the workspace, and return the files that were written or removed. Raises `BadInput`, with
    nothing changed, if one of them was changed by somebody else meanwhile. It can be called again after a kill: a file
    that already has its new content counts as unchanged.
    """
    changed = sorted(path for path in {*start, *delivered} if _entry(start, path) != _entry(delivered, path))
    changed_since = [path for path in changed if not _may_write(workspace, path, start, delivered)]
    if changed_since:
        names = ", ".join(changed_since[:_MAX_NAMED])
        more = f" and {len(changed_since) - _MAX_NAMED} more" if len(changed_since) > _MAX_NAMED else ""
        raise BadInput(f"not applied: the workspace has changed meanwhile: {names}{more}")
    try:
        _write(workspace, changed, delivered)
    except OSError as error:
        raise write_error(Path(os.fsdecode(error.filename or workspace)), error) from error
    return changed


def _entry(tree: SourceTree, path: str) -> tuple[bytes | None, bool]:
    return tree.files.get(path), path in tree.executable


def _may_write(workspace: Path, path: str, start: SourceTree, delivered: SourceTree) -> bool:
    """Whether a file still has its old content, or already has its new one, with no link on the path to it."""
    target = workspace / path
    parents = [parent for parent in target.parents if parent != workspace and parent.is_relative_to(workspace)]
    if target.is_symlink() or any(above.is_symlink() or (above.exists() and not above.is_dir()) for above in parents):
        return False
    now = target.read_bytes() if target.is_file() else None
    if now is None and target.exists():
        return False
    return now in (start.files.get(path), delivered.files.get(path))


def _write(workspace: Path, changed: list[str], delivered: SourceTree) -> None:
    """Write every new file beside its target before the first target is replaced."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path in (path for path in changed if path in delivered):
            target = workspace / path
            make_directories(target.parent)
            temporary = target.with_name(f".{secrets.token_hex(6)}.gametape")
            staged.append((temporary, target))
            temporary.write_bytes(delivered.files[path])
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
            temporary.chmod(mode | 0o111 if path in delivered.executable else mode & ~0o111)
        for temporary, target in staged:
            temporary.replace(target)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    for path in changed:
        if path not in delivered:
            (workspace / path).unlink(missing_ok=True)


def pull_request_text(
    goal: Goal,
    baseline: GoalBaseline,
    answer: dict[str, Any],
    start: SourceTree,
    after: SourceTree,
    left_out: list[str],
) -> str:
    """The request, the changes, the results of the command before and after, and the cost, as markdown."""
    asked = goal.instruction.strip()
    title = asked.splitlines()[0][:72]
    body = [asked, ""] if asked != title else []
    note = f" ({answer['reason']})" if answer["reason"] != "reached" else ""
    state = f"Reached{note}" if answer["reached"] else f"Not reached ({answer['reason']}); this is the best state"
    lines = [f"# {title}", "", *body, f"{state}: `{goal.success}`", "", "## Changes", ""]
    lines += _changes(start, after) or ["Nothing."]
    if left_out:
        lines += [
            "",
            "Left out, as these files are protected or no sources: " + ", ".join(f"`{path}`" for path in left_out),
        ]
    lines += ["", "## The criterion", "", *_criterion(baseline, answer), ""]
    lines += [
        "## What this rests on",
        "",
        answer["assurance_detail"],
        *_pinned(answer["pinned"]),
        "",
        "## Attempts",
        "",
    ]
    for attempt in answer["attempts"]:
        named = sorted({flag["rule"] for flag in attempt["tampering"]})
        tampering = f"; tampering: {', '.join(named)}" if named else ""
        lines.append(f"{attempt['n']}. {count_text(attempt)}, {attempt['tokens']} tokens{tampering}")
    if not answer["attempts"]:
        lines.append("None.")
    if answer.get("warnings"):
        lines += ["", *(f"- {warning}" for warning in answer["warnings"])]
    cost = f", ${answer['cost_usd']:.4f}" if answer["cost_usd"] else ""
    lines += ["", f"{answer['tokens']} tokens{cost}, by {goal.model}. Goal `{goal.goal_id}`.", ""]
    return "\n".join(lines)


def _pinned(paths: list[str]) -> list[str]:
    return (
        ["", "Judged as they were: " + ", ".join(f"`{path}`" for path in paths[:_MAX_PINNED]) + _more(paths)]
        if paths
        else []
    )


def _more(paths: list[str]) -> str:
    return f" and {len(paths) - _MAX_PINNED} more" if len(paths) > _MAX_PINNED else ""


def _changes(start: SourceTree, after: SourceTree) -> list[str]:
    lines = []
    for path in sorted({*start, *after}):
        old, new = start.files.get(path), after.files.get(path)
        if old == new and (path in start.executable) == (path in after.executable):
            continue
        what = "added" if old is None else "removed" if new is None else "changed"
        added, removed = count_changed_lines(old or b"", new or b"")
        lines.append(f"- `{path}` {what} (+{added} -{removed})")
    return lines


def _criterion(baseline: GoalBaseline, answer: dict[str, Any]) -> list[str]:
    last = answer["attempts"][answer["best"]]["criterion"] if answer["best"] is not None else None
    if not baseline.results and not baseline.broken:
        before = ", ".join(map(str, baseline.exit_codes))
        return [f"Exit code before: {before}. After: {last['exit_code'] if last else before}."]
    files = "1 file" if len(baseline.broken) == 1 else f"{len(baseline.broken)} files"
    unread = f", {files} that could not be read" if baseline.broken else ""
    before = f"{len(baseline.tests('passed'))} of {len(baseline.results)} tests passed{unread}"
    after = f"{last['passed']} passed, {last['skipped']} skipped, {last['xfailed']} excused" if last else before
    return [f"- before: {before}", f"- after: {after}"]
