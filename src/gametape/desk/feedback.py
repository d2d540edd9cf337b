"""People's feedback on an agent's work: stated by a person, or measured by how much of a patch is left in git."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.feedback import Feedback, parse_feedback
from gametape.core.trajectory import Trajectory
from gametape.desk.host_git import HostGit
from gametape.record.atomic import write_atomically
from gametape.record.errors import read_error
from gametape.record.journal import Journal
from gametape.record.journal_format import header_line, step_lines
from gametape.record.trajectory_file import load_trajectory, save_trajectory

_MAX_COMMITS = 1000
_LANDED_SHARE = 0.5
"""The share of added lines that a commit must contain to count as the one that brought the patch."""
_FILE = re.compile(r'^\+\+\+ (?:"?b/(?P<path>[^\t\n"]*)"?|/dev/null)')
_OLD = re.compile(r"^index ([0-9a-f]{40})\.\.")
LineCounts = Mapping[str, Counter[str]]
"""By file, how often each line is there."""


def utc_timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def add_feedback(path: Path, feedback: Feedback) -> list[Feedback]:
    """Add an entry to a trajectory, atomically, and return all of its entries. A journal that another process is
    writing is refused until that process has finished."""
    if path.suffix == ".jsonl":
        with Journal.open(path) as journal:  # nobody else writes meanwhile
            trajectory, entries = _with(journal.trajectory, feedback, path)
            document = trajectory.model_dump()
            write_atomically(path, header_line(document) + step_lines(document["steps"]))
    else:
        trajectory, entries = _with(load_trajectory(path), feedback, path)
        save_trajectory(path, trajectory)
    return entries


def _with(trajectory: Trajectory, feedback: Feedback, path: Path) -> tuple[Trajectory, list[Feedback]]:
    try:
        entries = [*parse_feedback(trajectory.extra), feedback]
    except (ValidationError, ValueError) as error:
        raise BadInput(f"{path}: its extra.feedback cannot be read") from error
    documents: list[dict[str, Any]] = [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries]
    extra = {**(trajectory.extra or {}), "feedback": documents}
    return Trajectory.model_validate(trajectory.model_dump() | {"extra": extra}), entries


@dataclass(frozen=True)
class PatchAdditions:
    """The lines that a patch adds, by file, net of those it removes, and the files' ids before it."""

    lines: LineCounts
    before: Mapping[str, str]


def parse_additions(patch: str) -> PatchAdditions:
    """Count the added lines of a patch. Blank lines are left out: they do not show whether work was kept."""
    lines: dict[str, Counter[str]] = {}
    before: dict[str, str] = {}
    path, old, hunk = None, "", False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            path, old, hunk = None, "", False
        elif not hunk and (match := _OLD.match(line)):
            old = match[1]
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
    """The share of added lines that are there now, not counting lines that were there before the patch."""
    total = sum(counts.total() for counts in added.values())
    if not total:
        return 0.0
    kept = 0
    for path, counts in added.items():
        now_counts = now.get(path, Counter())
        before_counts = before.get(path, Counter())
        kept += sum(max(0, min(count, now_counts[line] - before_counts[line])) for line, count in counts.items())
    return kept / total


@dataclass(frozen=True)
class PatchSurvival:
    """The commit that brought a patch, and the share of it that is left so many commits later."""

    commit: str
    commits_since: int
    share: float


def patch_survival(patch: str, repository: Path) -> PatchSurvival | None:
    """None where the patch is not in the history of what is checked out."""
    added = parse_additions(patch)
    if not added.lines:
        raise BadInput("the patch adds no lines, so nothing can be said about what was kept")
    git = HostGit(repository)
    before = {path: _blob_lines(git, added.before.get(path, "")) for path in added.lines}
    history = git.text("rev-list", "--reverse", f"--max-count={_MAX_COMMITS}", "HEAD", "--", *added.lines)
    for commit in history.split():
        if kept_share(added.lines, before, _lines_at(git, commit, added.lines)) >= _LANDED_SHARE:
            since = len(git.text("rev-list", f"{commit}..HEAD").split())
            share = kept_share(added.lines, before, _lines_at(git, "HEAD", added.lines))
            return PatchSurvival(commit, since, share)
    return None


def read_patch(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise read_error(path, error) from error


def _lines_at(git: HostGit, commit: str, paths: LineCounts) -> LineCounts:
    return {path: _count_lines(git.ask("show", f"{commit}:{path}")) for path in paths}


def _blob_lines(git: HostGit, blob: str) -> Counter[str]:
    """A file that is new in the patch has no blob, or one whose id is all zeros."""
    return _count_lines(git.ask("cat-file", "blob", blob)) if set(blob) - {"0"} else Counter()


def _count_lines(answer: tuple[int, bytes]) -> Counter[str]:
    """The lines that git printed; none where it failed, for then there is no such file."""
    code, content = answer
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    return Counter(line for line in lines if line.strip()) if code == 0 else Counter()
