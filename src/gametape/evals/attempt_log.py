"""`attempts.jsonl`: every finished attempt of an evaluation, one line each, so that a run can be resumed.

The first line holds the settings; a run with other settings is refused. A line counts once its newline is written: an
attempt that was logged is never run twice, even after `kill -9`.
"""

import json
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.evals.attempt import EvalAttempt
from gametape.record.append_log import AppendLog
from gametape.record.errors import printable_path, read_error, write_error

ATTEMPTS_FILE = "attempts.jsonl"
_KEY, _FORMAT = "gametape_eval", 1
_LONGEST_HEADER = 1 << 20


def read_settings(directory: Path) -> dict[str, Any]:
    """The settings that a run was begun with; none where there is no run that can be read."""
    try:
        with (directory / ATTEMPTS_FILE).open("rb") as file:
            header = json.loads(file.readline(_LONGEST_HEADER))
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


class AttemptLog:
    """The only writer of a run's attempts; a file lock keeps others out."""

    def __init__(self, log: AppendLog) -> None:
        self._log = log
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
        except OSError as error:
            raise write_error(directory, error) from None
        log = cls(AppendLog.open(path, durable=False))
        try:
            log._load({_KEY: _FORMAT, **settings}, resume)
        except BaseException:
            log.close()
            raise
        return log

    def add(self, attempt: EvalAttempt) -> None:
        self._log.append(attempt.model_dump(mode="json", exclude_defaults=True))
        self._attempts[attempt.task, attempt.number] = attempt

    def finished(self, task: str, number: int) -> EvalAttempt | None:
        """The logged attempt; None for one that has yet to run, or that an infrastructure failure broke off."""
        attempt = self._attempts.get((task, number))
        return attempt if attempt and attempt.passed is not None else None

    def close(self) -> None:
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, header: dict[str, Any], resume: bool) -> None:
        path = self._log.path
        begun, *records = self._log.read_records() or [{}]
        if not records:
            self._log.truncate()
            self._log.append(header)
            return
        if not resume:
            directory = printable_path(path.parent)
            raise BadInput(f"{directory}: holds a run; --resume goes on with it, or give the name of a new directory")
        self._log.require_header(begun, header)
        try:
            for attempt in (EvalAttempt.model_validate_json(json.dumps(record)) for record in records):
                self._attempts[attempt.task, attempt.number] = attempt
        except ValidationError as error:
            raise read_error(path, OSError(0, f"not a run's attempts: {str(error).splitlines()[0]}")) from None
