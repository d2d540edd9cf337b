"""Feedback of people on an agent's work: written into its trajectory, or read from what became of its lines in git."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.feedback import Feedback, parse_feedback
from gametape.core.trajectory import Trajectory
from gametape.desk.host_git import host_git
from gametape.record.atomic import write_atomically
from gametape.record.errors import read_error
from gametape.record.journal import Journal
from gametape.record.journal_format import header_line, step_lines
from gametape.record.trajectory_file import load_trajectory, save_trajectory

_MOST_COMMITS = 1000
_LANDED = 0.5
"""The share of added lines that a commit must have for the patch to have arrived with it."""
_FILE = re.compile(r'^\+\+\+ (?:"?b/(?P<path>[^\t\n"]*)"?|/dev/null)')
_OLD = re.compile(r"^index ([0-9a-f]{40})\.\.")
LineCounts = Mapping[str, Counter[str]]
"""By file, how often each line is there."""


def utc_timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def add_feedback(path: Path, feedback: Feedback) -> list[Feedback]:
    """Add a word to a trajectory, whole or not at all, and give all there are. A journal that somebody is writing is
    refused: it may be said when they have finished."""
    if path.suffix == ".jsonl":
        with Journal.open(path) as journal:  # nobody else writes meanwhile
            trajectory, told = _with(journal.trajectory, feedback, path)
            document = trajectory.model_dump()
            write_atomically(path, header_line(document) + step_lines(document["steps"]))
    else:
        trajectory, told = _with(load_trajectory(path), feedback, path)
        save_trajectory(path, trajectory)
    return told


def _with(trajectory: Trajectory, feedback: Feedback, path: Path) -> tuple[Trajectory, list[Feedback]]:
    try:
        told = [*parse_feedback(trajectory.extra), feedback]
    except (ValidationError, ValueError) as error:
        raise BadInput(f"{path}: its extra.feedback cannot be read") from error
    plain: list[dict[str, Any]] = [one.model_dump(mode="json", exclude_defaults=True) for one in told]
    extra = {**(trajectory.extra or {}), "feedback": plain}
    return Trajectory.model_validate(trajectory.model_dump() | {"extra": extra}), told


@dataclass(frozen=True)
class PatchAdditions:
    """The lines that a patch adds, by file, net of those it removes, and the files' ids before it."""

    lines: LineCounts
    before: Mapping[str, str]


def parse_additions(patch: str) -> PatchAdditions:
    """Blank lines say nothing about whether work was kept."""
    lines: dict[str, Counter[str]] = {}
    before: dict[str, str] = {}
    path, old, hunk = None, "", False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            path, old, hunk = None, "", False
        elif not hunk and (found := _OLD.match(line)):
            old = found[1]
        elif not hunk and line.startswith("+++ "):
            path = named["path"] if (named := _FILE.match(line)) else None
            if path:
                before[path] = old
                lines[path] = Counter()
        elif line.startswith("@@ "):
            hunk = True
        elif hunk and path and line[:1] in ("+", "-") and line[1:].strip():
            lines[path][line[1:]] += 1 if line[0] == "+" else -1
    return PatchAdditions({path: +counts for path, counts in lines.items() if +counts}, before)


def kept_share(added: LineCounts, before: LineCounts, now: LineCounts) -> float:
    """How many of the added lines are there now, beside those that were there before anyway."""
    total = sum(counts.total() for counts in added.values())
    if not total:
        return 0.0
    kept = 0
    for path, counts in added.items():
        there = now.get(path, Counter())
        known = before.get(path, Counter())
        kept += sum(max(0, min(count, there[line] - known[line])) for line, count in counts.items())
    return kept / total


@dataclass(frozen=True)
class PatchSurvival:
    """What became of a patch: the commit it arrived with, and how much of it is left so many commits later."""

    commit: str
    commits_since: int
    share: float


def patch_survival(patch: str, repository: Path) -> PatchSurvival | None:
    """None where the patch never arrived in the history of what is checked out."""
    added = parse_additions(patch)
    if not added.lines:
        raise BadInput("the patch adds no lines, so nothing can be said about what was kept")
    before = {path: _blob(repository, added.before.get(path, "")) for path in added.lines}
    asked = ("rev-list", "--reverse", f"--max-count={_MOST_COMMITS}", "HEAD", "--", *added.lines)
    for commit in _git(repository, *asked).split():
        share = kept_share(added.lines, before, _at(repository, commit, added.lines))
        if share >= _LANDED:
            since = len(_git(repository, "rev-list", f"{commit}..HEAD").split())
            left = kept_share(added.lines, before, _at(repository, "HEAD", added.lines))
            return PatchSurvival(commit, since, left)
    return None


def read_patch(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise read_error(path, error) from error


def _at(repository: Path, commit: str, paths: LineCounts) -> LineCounts:
    return {path: _counted(_git(repository, "show", f"{commit}:{path}", missing="")) for path in paths}


def _blob(repository: Path, name: str) -> Counter[str]:
    known = name and set(name) != {"0"}
    return _counted(_git(repository, "cat-file", "blob", name, missing="") if known else "")


def _counted(text: str) -> Counter[str]:
    return Counter(line for line in text.split("\n") if line.strip())


def _git(repository: Path, *arguments: str, missing: str | None = None) -> str:
    """What git answers; `missing` instead of an error for what is not there."""
    try:
        done = host_git(repository, *arguments)
    except FileNotFoundError:
        raise MissingDependency("git is not installed; install it to read what became of a patch") from None
    if done.returncode and missing is None:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BadInput(f"{repository}: git {arguments[0]} failed: {said[-1] if said else done.returncode}")
    return missing if done.returncode and missing is not None else done.stdout.decode("utf-8", "surrogateescape")
