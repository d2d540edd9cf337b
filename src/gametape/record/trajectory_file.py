"""Open and save trajectory files: the journal of a running trajectory and the ATIF file of a finished one."""

import stat
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.core.validation import Problem, problems_from
from gametape.record.atomic import write_atomically
from gametape.record.errors import printable_path, read_error
from gametape.record.journal_format import is_journal, parse_journal
from gametape.record.strict_json import InvalidJson, decode, encode


class ParsedTrajectory(NamedTuple):
    """What a file holds. `trajectory` is None exactly when there are problems.

    `torn_bytes` is the length of the unfinished last line that a killed writer leaves, which is no problem;
    `complete_bytes` is all before it.
    """

    trajectory: Trajectory | None
    problems: list[Problem]
    complete_bytes: int
    torn_bytes: int
    is_journal: bool = False


def load_trajectory(path: Path) -> Trajectory:
    """Open a trajectory in either form, or raise `BadInput`: a line with file, location and expectation."""
    return require_trajectory(parse_file(path), path)


def require_trajectory(parsed: ParsedTrajectory, path: Path) -> Trajectory:
    """The trajectory of a parsed file, or `BadInput` that names its first problem."""
    if parsed.trajectory is not None:
        return parsed.trajectory
    first, *more = parsed.problems
    raise BadInput(f"{printable_path(path)}: {first}" + (f" (and {len(more)} more)" if more else ""))


def parse_file(path: Path) -> ParsedTrajectory:
    """Open a trajectory in either form and list all its problems. Raises if the file cannot be read."""
    return parse_bytes(_read(path))


def parse_bytes(data: bytes) -> ParsedTrajectory:
    if not data:
        return ParsedTrajectory(None, [Problem("", "a trajectory, but the file is empty")], 0, 0)
    try:
        if is_journal(data):
            document, whole, torn = parse_journal(data)
            return ParsedTrajectory(*_validated(document), whole, torn, is_journal=True)
        document = decode(data)
    except InvalidJson as error:
        return ParsedTrajectory(None, [error.problem], len(data), 0)
    trajectory, problems = _validated(document)
    if trajectory is not None and not trajectory.steps:
        trajectory, problems = None, [Problem("steps", "at least one step")]
    return ParsedTrajectory(trajectory, problems, len(data), 0)


def save_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Write an ATIF file atomically."""
    try:
        data = encode(trajectory.model_dump())
    except InvalidJson as error:
        raise BadInput(f"{printable_path(path)}: not written: {error.problem}") from None
    write_atomically(path, data)


def _validated(document: Any) -> tuple[Trajectory | None, list[Problem]]:
    if not isinstance(document, dict):
        return None, [Problem("", "a JSON object that holds a trajectory")]
    try:
        return Trajectory.model_validate(document), []
    except ValidationError as error:
        return None, problems_from(error, document)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise BadInput(f"{printable_path(path)}: {kind}; expected a trajectory file")
        return path.read_bytes()
    except OSError as error:
        raise read_error(path, error) from None
    except ValueError:
        raise BadInput(f"{printable_path(path)}: not a path") from None
