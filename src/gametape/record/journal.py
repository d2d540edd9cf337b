"""The journal of a running trajectory: one line per finished turn, safe on disk before the next turn begins.

Whatever ends the process, the journal opens with every turn that was appended. Closing makes it an ATIF file.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from gametape.core.atif import Extra, FinalMetrics
from gametape.core.errors import BadInput, GametapeError
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory, step_faults
from gametape.core.validation import Problem, problems_from, raise_faults
from gametape.record.atomic import create_temporary, sync_directory, write_all
from gametape.record.errors import (
    DISK_FULL_ERRNOS,
    OutOfDiskSpace,
    printable_path,
    read_error,
    write_error,
)
from gametape.record.journal_format import (
    context_after,
    drop_prompt_prefix,
    header_line,
    step_line,
    step_lines,
    subagent_line,
)
from gametape.record.strict_json import InvalidJson
from gametape.record.trajectory_file import (
    load_trajectory,
    parse_file,
    require_trajectory,
    save_trajectory,
)

_ENDING = ("outcome", "reason", "verdict")
"""What a trajectory says of its end, under `extra`."""


class Journal:
    """The one writer of a journal. Leaving its `with` block lets go of it; only `close` finishes the file."""

    def __init__(self, path: Path, fd: int, trajectory: Trajectory, size: int, torn_bytes: int = 0) -> None:
        self.path = path
        self.torn_bytes = torn_bytes
        self._fd = fd
        self._size = size
        self._begun = trajectory
        self._steps = list(trajectory.steps)
        self._subagents = list(trajectory.subagent_trajectories or [])
        self._read: list[int] = []
        for step in self._steps:
            self._read = context_after(_ids(step), self._read)

    @classmethod
    def create(cls, path: Path, trajectory: Trajectory) -> Self:
        """Begin a journal `NAME.jsonl`, with the steps the trajectory already has. Nothing is overwritten."""
        _refuse_if_closed(path)
        try:
            document = trajectory.model_dump()
            data = header_line(document)
            data += step_lines(document["steps"])
        except InvalidJson as error:
            raise BadInput(f"{printable_path(path)}: not begun: {error.problem}") from None
        try:
            return cls(path, _new_file(path, data), trajectory, len(data))
        except FileExistsError:
            raise BadInput(f"{printable_path(path)}: already there; open it to continue it") from None
        except OSError as error:
            raise write_error(path, error) from None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Continue a journal after its last finished turn; `torn_bytes` of an unfinished one are dropped."""
        _refuse_if_closed(path)
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise read_error(path, error) from None
        try:
            _lock(fd, path)
            examined = parse_file(path)
            trajectory = require_trajectory(examined, path)
            if not examined.is_journal:
                raise BadInput(f"{printable_path(path)}: holds a finished trajectory, not a journal")
            os.ftruncate(fd, examined.complete_bytes)
            os.fsync(fd)
            return cls(path, fd, trajectory, examined.complete_bytes, examined.torn_bytes)
        except BaseException as error:
            os.close(fd)
            if isinstance(error, OSError):
                raise write_error(path, error) from None
            raise

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Make a journal again of a trajectory that was closed, to continue it: how it ended is forgotten.

        The closed file goes only when the journal is whole on disk; where both are found, this was cut short.
        """
        finished = path.with_suffix(".json")
        trajectory = load_trajectory(finished)
        kept = {key: value for key, value in (trajectory.extra or {}).items() if key not in _ENDING}
        document = trajectory.model_dump() | {"extra": kept}
        document.pop("final_metrics", None)
        begun = Trajectory.model_validate(document)
        document = begun.model_dump()
        data = header_line(document) + step_lines(document["steps"])
        try:
            path.unlink(missing_ok=True)
            fd = _new_file(path, data)
            finished.unlink()
            sync_directory(path.parent)
        except OSError as error:
            raise write_error(path, error) from None
        return cls(path, fd, begun, len(data))

    @property
    def trajectory(self) -> Trajectory:
        """All that was recorded so far."""
        update: dict[str, Any] = {"steps": list(self._steps)}
        if self._subagents:
            update["subagent_trajectories"] = list(self._subagents)
        return self._begun.model_copy(update=update)

    def append(self, step: Step, subagents: Sequence[Trajectory] = ()) -> None:
        """Record a finished turn and the subagents that finished in it. When this returns they are on disk.

        If it raises, the turn is not recorded, those before it are, and it may be appended again.
        """
        step, subagents, data = self._checked(step, subagents)
        try:
            if os.fstat(self._fd).st_size != self._size:
                os.ftruncate(self._fd, self._size)
            write_all(self._fd, data)
            os.fsync(self._fd)
        except BaseException as error:
            self._drop_unfinished()
            if isinstance(error, OSError):
                raise self._not_recorded(step, error) from None
            raise
        self._size += len(data)
        self._steps.append(step)
        self._subagents += subagents
        self._read = context_after(_ids(step), self._read)

    def close(self, *, final_metrics: FinalMetrics | None = None, extra: Extra | None = None) -> Path:
        """Write `NAME.json`, remove the journal, and say which file holds the trajectory now.

        `extra` is added to the trajectory's own. A journal without a turn stays as it is, for ATIF knows no
        trajectory without steps. If writing fails the journal is still whole and still open.
        """
        finished = self.path.with_suffix(".json")
        if self._steps:
            save_trajectory(finished, self._finished(final_metrics, extra))
            self._remove()
        self.release()
        return finished if self._steps else self.path

    def _remove(self) -> None:
        try:
            self.path.unlink()
            sync_directory(self.path.parent)
        except OSError as error:
            raise write_error(self.path, error) from None

    def release(self) -> None:
        """Let go of the journal without finishing it; another writer may continue it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _checked(self, step: Step, subagents: Sequence[Trajectory]) -> tuple[Step, list[Trajectory], bytes]:
        """The turn as it will be read back: nothing is written that could not be."""
        first = len(self._subagents)
        documents = [sub.model_dump() for sub in subagents]
        document = step.model_dump()
        try:
            data = b"".join(subagent_line(sub, first + index) for index, sub in enumerate(documents))
            data += step_line(drop_prompt_prefix(document, self._read), len(self._steps))
            step = Step.model_validate(document)
            subagents = [Trajectory.model_validate(sub) for sub in documents]
            self._fits(step, subagents)
        except InvalidJson as error:
            raise self._refused(error.problem) from None
        except ValidationError as error:
            raise self._refused(problems_from(error, document)[0]) from None
        return step, subagents, data

    def _fits(self, step: Step, subagents: Sequence[Trajectory]) -> None:
        known = [sub.trajectory_id for sub in (*self._subagents, *subagents)]
        if None in known or len(set(known)) < len(known) or not all(sub.steps for sub in subagents):
            raise_faults([(("subagent_trajectories",), "trajectories with steps, each with an id of its own")])
        faults = [*step_faults(step, len(self._steps), self._begun.schema_version, set(known))]
        if faults:
            raise_faults(faults)

    def _finished(self, final_metrics: FinalMetrics | None, extra: Extra | None) -> Trajectory:
        document = self.trajectory.model_dump()
        if final_metrics is not None:
            document["final_metrics"] = final_metrics.model_dump()
        if extra:
            document["extra"] = (document.get("extra") or {}) | extra
        return Trajectory.model_validate(document)

    def _drop_unfinished(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return  # an unfinished turn is ignored when read, and the next append tries again

    def _refused(self, problem: Problem) -> GametapeError:
        return BadInput(f"{printable_path(self.path)}: turn not recorded: {problem}")

    def _not_recorded(self, step: Step, error: OSError) -> GametapeError:
        text = f"{printable_path(self.path)}: step {step.step_id} not recorded ({error.strerror}), all before it are"
        return (
            OutOfDiskSpace(f"{text}: free some space and try again")
            if error.errno in DISK_FULL_ERRNOS
            else BadInput(text)
        )


def _ids(step: Step) -> dict[str, Any]:
    """What `read_so_far` looks at, without writing the whole step down."""
    metrics = step.metrics
    return {"metrics": {name: getattr(metrics, name, None) for name in ("prompt_token_ids", "completion_token_ids")}}


def _new_file(path: Path, data: bytes) -> int:
    """Make the journal appear locked and with its header whole, or not at all."""
    fd, temporary = create_temporary(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_all(fd, data)
        os.fsync(fd)
        os.link(temporary, path)
        sync_directory(path.parent)
    except BaseException:
        os.close(fd)
        raise
    finally:
        temporary.unlink()
    return fd


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(f"{printable_path(path)}: another process is writing it") from None
    try:
        still_there = os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        still_there = False
    if not still_there:
        raise BadInput(f"{printable_path(path)}: was closed by another process")


def _refuse_if_closed(path: Path) -> None:
    if path.suffix != ".jsonl":
        raise BadInput(f"{printable_path(path)}: a journal's name ends in .jsonl")
    if path.with_suffix(".json").exists():
        raise BadInput(f"{printable_path(path.with_suffix('.json'))}: already there, so this trajectory was closed")
