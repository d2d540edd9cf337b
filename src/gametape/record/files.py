"""Open and save trajectory files: the journal of a running trajectory and the ATIF file of a finished one."""

import stat
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.problems import Problem, problems_in
from gametape.core.trajectory import Trajectory
from gametape.record.atomic import write_atomically
from gametape.record.lines import assemble, is_journal
from gametape.record.plain import NotPlain, decode, encode
from gametape.record.trouble import shown, unreadable


class Examined(NamedTuple):
    """What a file holds. `trajectory` is there exactly when there are no problems.

    `torn_bytes` is the length of the unfinished last line a killed writer leaves behind, which is no problem;
    `whole_bytes` is all before it.
    """

    trajectory: Trajectory | None
    problems: list[Problem]
    whole_bytes: int
    torn_bytes: int
    in_journal: bool = False


def load(path: Path) -> Trajectory:
    """Open a trajectory in either form, or raise `BadInput`: one line with file, place and what belongs."""
    return trajectory_in(examine(path), path)


def trajectory_in(examined: Examined, path: Path) -> Trajectory:
    """The trajectory of an examined file, or `BadInput` that names its first problem."""
    if examined.trajectory is not None:
        return examined.trajectory
    first, *more = examined.problems
    raise BadInput(f"{shown(path)}: {first}" + (f" (and {len(more)} more)" if more else ""))


def examine(path: Path) -> Examined:
    """Open a trajectory in either form and say all that is wrong with it. Raises if it cannot be read."""
    return examine_bytes(_read(path))


def examine_bytes(data: bytes) -> Examined:
    if not data:
        return Examined(None, [Problem("", "a trajectory, but the file is empty")], 0, 0)
    try:
        if is_journal(data):
            document, whole, torn = assemble(data)
            return Examined(*_validated(document), whole, torn, in_journal=True)
        document = decode(data)
    except NotPlain as error:
        return Examined(None, [error.problem], len(data), 0)
    trajectory, problems = _validated(document)
    if trajectory is not None and not trajectory.steps:
        trajectory, problems = None, [Problem("steps", "at least one step")]
    return Examined(trajectory, problems, len(data), 0)


def save(path: Path, trajectory: Trajectory) -> None:
    """Write an ATIF file atomically."""
    try:
        data = encode(trajectory.model_dump())
    except NotPlain as error:
        raise BadInput(f"{shown(path)}: not written: {error.problem}") from None
    write_atomically(path, data)


def _validated(document: Any) -> tuple[Trajectory | None, list[Problem]]:
    if not isinstance(document, dict):
        return None, [Problem("", "a JSON object that holds a trajectory")]
    try:
        return Trajectory.model_validate(document), []
    except ValidationError as error:
        return None, problems_in(error, document)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise BadInput(f"{shown(path)}: {kind}; expected a trajectory file")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise BadInput(f"{shown(path)}: not a path") from None
