"""`attempts.jsonl`: every finished attempt of an evaluation, one line each, so that a run can be resumed.

The first line holds the settings; a run with other settings is refused. A line counts once its newline is written: an
attempt that was logged is never run twice, even after `kill -9`.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.evals.attempt import EvalAttempt
from gametape.record.atomic import write_all
from gametape.record.errors import printable_path, read_error, write_error

ATTEMPTS_FILE = "attempts.jsonl"
_KEY, _FORMAT = "gametape_eval", 1


class AttemptLog:
    """The only writer of a run's attempts; a file lock keeps others out."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd
        self._attempts: dict[tuple[str, int], EvalAttempt] = {}

    @classmethod
    def open(cls, directory: Path, settings: dict[str, Any], resume: bool) -> Self:
        """Start in a new or empty directory, or resume a run with the same settings. A run without any finished attempt
        starts anew."""
        path = directory / ATTEMPTS_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not path.exists() and any(directory.iterdir()):
                raise BadInput(f"{printable_path(directory)}: not empty; give the name of a new directory")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_error(directory, error) from None
        log = cls(path, fd)
        try:
            log._load({_KEY: _FORMAT, **settings}, resume)
        except BaseException:
            log.close()
            raise
        return log

    def add(self, attempt: EvalAttempt) -> None:
        self._write(attempt.model_dump(mode="json", exclude_defaults=True))
        self._attempts[attempt.task, attempt.number] = attempt

    def finished(self, task: str, number: int) -> EvalAttempt | None:
        """The logged attempt; None for one that has yet to run, or that an infrastructure failure broke off."""
        attempt = self._attempts.get((task, number))
        return attempt if attempt and attempt.passed is not None else None

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, header: dict[str, Any], resume: bool) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"{printable_path(self._path)}: another process is writing it") from None
        with open(self._fd, "rb", closefd=False) as file:
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        first, *lines = whole.splitlines() or [b""]
        if not lines:
            os.ftruncate(self._fd, 0)
            self._write(header)
            return
        if not resume:
            directory = printable_path(self._path.parent)
            raise BadInput(f"{directory}: holds a run; --resume goes on with it, or give the name of a new directory")
        os.ftruncate(self._fd, len(whole))
        try:
            begun = json.loads(first)
            for attempt in map(EvalAttempt.model_validate_json, lines):
                self._attempts[attempt.task, attempt.number] = attempt
        except (ValueError, ValidationError) as error:
            raise read_error(self._path, OSError(0, f"not a run's attempts: {str(error).splitlines()[0]}")) from None
        if not isinstance(begun, dict) or begun != json.loads(json.dumps(header)):
            raise BadInput(
                f"{printable_path(self._path)}: begun with {_difference(begun, header)}; that cannot be resumed"
            )

    def _write(self, record: dict[str, Any]) -> None:
        try:
            write_all(self._fd, json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise write_error(self._path, error) from None


def _difference(old: Any, new: dict[str, Any]) -> str:
    if not isinstance(old, dict):
        return "something else"
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name)!r}, not {new.get(name)!r}" for name in names)
