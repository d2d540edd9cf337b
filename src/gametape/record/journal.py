"""The journal of a running trajectory: one line per finished turn, safe on disk before the next turn begins.

Whatever ends the process, the journal opens with every turn that was appended. Closing makes it an ATIF file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from gametape.core.atif import Extra, FinalMetrics
from gametape.core.errors import BadInput, GametapeError
from gametape.core.step import Step
from gametape.core.token_prefix import TokenPrefix, are_token_ids, as_prefix
from gametape.core.trajectory import Trajectory, step_faults
from gametape.core.validation import Problem, problems_from, raise_faults
from gametape.record.append_log import AppendLog
from gametape.record.atomic import sync_directory
from gametape.record.errors import DISK_FULL_ERRNOS, OutOfDiskSpace, printable_path, write_error
from gametape.record.journal_format import (
    drop_prompt_prefix,
    header_line,
    step_line,
    step_lines,
    subagent_line,
)
from gametape.record.journal_steps import JournalSteps, context_after_step
from gametape.record.strict_json import InvalidJson
from gametape.record.trajectory_file import load_trajectory, parse_file, require_trajectory, save_trajectory

_ENDING = ("outcome", "reason", "verdict")
"""The keys of `extra` that describe how a trajectory ended."""


class Journal:
    """The one writer of a journal. Leaving its `with` block releases it; only `close` finishes the file."""

    def __init__(
        self, log: AppendLog, trajectory: Trajectory, torn_bytes: int = 0, unread: JournalSteps | None = None
    ) -> None:
        """`unread` are the steps of a journal that was not read, in place of those of the trajectory."""
        self.path = log.path
        self.torn_bytes = torn_bytes
        self.context = TokenPrefix()
        """Prompt and completion of the last turn."""
        self._log = log
        self._start = trajectory
        self._unread = unread
        self._read = list(trajectory.steps)
        self._subagents = list(trajectory.subagent_trajectories or [])
        if unread is not None:
            self.context = unread.context()
        for step in self._read:
            self.context = context_after_step(step, self.context)

    @classmethod
    def create(cls, path: Path, trajectory: Trajectory) -> Self:
        """Begin a journal `NAME.jsonl`, with the steps the trajectory already has. Nothing is overwritten."""
        _refuse_if_closed(path)
        try:
            return cls(AppendLog.create(path, _journal_bytes(trajectory)), trajectory)
        except InvalidJson as error:
            raise BadInput(f"{printable_path(path)}: not begun: {error.problem}") from None
        except FileExistsError:
            raise BadInput(f"{printable_path(path)}: already there; open it to continue it") from None
        except OSError as error:
            raise write_error(path, error) from None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Continue a journal after its last finished turn; `torn_bytes` of an unfinished one are dropped."""
        _refuse_if_closed(path)
        log = AppendLog.open_existing(path)
        try:
            parsed = parse_file(path)
            trajectory = require_trajectory(parsed, path)
            if not parsed.is_journal:
                raise BadInput(f"{printable_path(path)}: holds a finished trajectory, not a journal")
            log.truncate(parsed.complete_bytes)
            return cls(log, trajectory, parsed.torn_bytes)
        except BaseException:
            log.close()
            raise

    @classmethod
    def open_unread(cls, path: Path) -> Self:
        """Continue a journal without reading all of it: a step is read, and checked, when it is asked for."""
        _refuse_if_closed(path)
        log = AppendLog.open_existing(path)
        try:
            steps = JournalSteps.open(path)
            if steps is None:
                log.close()
                return cls.open(path)
            torn = log.sync() - steps.complete_bytes
            log.truncate(steps.complete_bytes)
            return cls(log, steps.header, torn, steps)
        except BaseException:
            log.close()
            raise

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Turn a closed trajectory into a journal again, to continue it: how it ended is forgotten.

        The closed file goes only when the journal is whole on disk; where both exist, this was cut short.
        """
        finished = path.with_suffix(".json")
        document = load_trajectory(finished).model_dump()
        extra = {key: value for key, value in (document.get("extra") or {}).items() if key not in _ENDING}
        document.pop("final_metrics", None)
        trajectory = Trajectory.model_validate(document | {"extra": extra})
        try:
            path.unlink(missing_ok=True)
            log = AppendLog.create(path, _journal_bytes(trajectory))
            finished.unlink()
            sync_directory(path.parent)
        except OSError as error:
            raise write_error(path, error) from None
        return cls(log, trajectory)

    @property
    def steps(self) -> Sequence[Step]:
        """Everything recorded so far, and what will be."""
        return self._read if self._unread is None else self._unread

    @property
    def trajectory(self) -> Trajectory:
        """Everything recorded so far."""
        update: dict[str, Any] = {"steps": list(self.steps)}
        if self._subagents:
            update["subagent_trajectories"] = list(self._subagents)
        return self._start.model_copy(update=update)

    def append(self, step: Step, subagents: Sequence[Trajectory] = ()) -> None:
        """Record a finished turn and the subagents that finished in it. When this returns they are on disk.

        If it raises, the turn is not recorded, those before it are, and it may be appended again.
        """
        step, subagents, data = self._checked(step, subagents)
        try:
            self._log.append_bytes(data)
        except OSError as error:
            raise self._not_recorded(step, error) from None
        if self._unread is None:
            self._read.append(step)
        else:
            self._unread.append(step, len(data))
        self._subagents += subagents
        self.context = context_after_step(step, self.context)

    def close(self, *, final_metrics: FinalMetrics | None = None, extra: Extra | None = None) -> Path:
        """Write `NAME.json`, remove the journal, and return the file that holds the trajectory now.

        `extra` is added to the trajectory's own. A journal without a turn stays as it is, for ATIF knows no
        trajectory without steps. If writing fails the journal is still whole and still open.
        """
        finished = self.path.with_suffix(".json")
        if self.steps:
            save_trajectory(finished, self._finished(final_metrics, extra))
            self._remove()
        self.release()
        return finished if self.steps else self.path

    def _remove(self) -> None:
        try:
            self.path.unlink()
            sync_directory(self.path.parent)
        except OSError as error:
            raise write_error(self.path, error) from None

    def release(self) -> None:
        """Let go of the journal without finishing it; another writer may continue it."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _checked(self, step: Step, subagents: Sequence[Trajectory]) -> tuple[Step, list[Trajectory], bytes]:
        """The turn as it will be read back: nothing is written that could not be read."""
        first = len(self._subagents)
        documents = [sub.model_dump() for sub in subagents]
        document = self._document(step)
        try:
            data = b"".join(subagent_line(sub, first + index) for index, sub in enumerate(documents))
            data += step_line(drop_prompt_prefix(document, self.context), len(self.steps))
            step = Step.model_validate(document)
            subagents = [Trajectory.model_validate(sub) for sub in documents]
            self._fits(step, subagents)
        except InvalidJson as error:
            raise self._refused(error.problem) from None
        except ValidationError as error:
            raise self._refused(problems_from(error, document)[0]) from None
        return step, subagents, data

    def _document(self, step: Step) -> dict[str, Any]:
        """The step as JSON, but its prompt as a part of the conversation before it: to write out a whole conversation
        at every turn would make each turn dearer than the one before."""
        prompt = step.metrics.prompt_token_ids if step.metrics else None
        if step.metrics is None or prompt is None:
            return step.model_dump()
        without = step.metrics.model_copy(update={"prompt_token_ids": []})
        document = step.model_copy(update={"metrics": without}).model_dump()
        ids = as_prefix(prompt)
        continues = ids.starts_with(self.context)
        more = ids[len(self.context) if continues else 0 :]
        if not are_token_ids(more):
            document["metrics"]["prompt_token_ids"] = list(prompt)
        else:
            shared = continues and not isinstance(prompt, TokenPrefix)
            document["metrics"]["prompt_token_ids"] = self.context.extended(more) if shared else ids
        return document

    def _fits(self, step: Step, subagents: Sequence[Trajectory]) -> None:
        known = [sub.trajectory_id for sub in (*self._subagents, *subagents)]
        if None in known or len(set(known)) < len(known) or not all(sub.steps for sub in subagents):
            raise_faults([(("subagent_trajectories",), "trajectories with steps, each with an id of its own")])
        faults = [*step_faults(step, len(self.steps), self._start.schema_version, set(known))]
        if faults:
            raise_faults(faults)

    def _finished(self, final_metrics: FinalMetrics | None, extra: Extra | None) -> Trajectory:
        document = self.trajectory.model_dump()
        if final_metrics is not None:
            document["final_metrics"] = final_metrics.model_dump()
        if extra:
            document["extra"] = (document.get("extra") or {}) | extra
        return Trajectory.model_validate(document)

    def _refused(self, problem: Problem) -> GametapeError:
        return BadInput(f"{printable_path(self.path)}: turn not recorded: {problem}")

    def _not_recorded(self, step: Step, error: OSError) -> GametapeError:
        text = f"{printable_path(self.path)}: step {step.step_id} not recorded ({error.strerror}), all before it are"
        return (
            OutOfDiskSpace(f"{text}: free some space and try again")
            if error.errno in DISK_FULL_ERRNOS
            else BadInput(text)
        )


def _journal_bytes(trajectory: Trajectory) -> bytes:
    document = trajectory.model_dump()
    return header_line(document) + step_lines(document["steps"])


def _refuse_if_closed(path: Path) -> None:
    if path.suffix != ".jsonl":
        raise BadInput(f"{printable_path(path)}: a journal's name ends in .jsonl")
    if path.with_suffix(".json").exists():
        raise BadInput(f"{printable_path(path.with_suffix('.json'))}: already there, so this trajectory was closed")
