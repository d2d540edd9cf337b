"""Verdicts by what they depend on: the task, the whole workspace, the wall, and the verifier itself."""

import functools
import hashlib
import json
from pathlib import Path

from pydantic import ValidationError

from gametape.core.verdict import Verdict
from gametape.record.atomic import write_atomically
from gametape.verify.submission import Submission


@functools.cache
def _verifier_digest() -> str:
    """Names this verifier: another rule or another layer is another verdict."""
    whole = hashlib.sha256()
    package = Path(__file__).resolve().parent.parent
    for path in sorted([*(package / "verify").rglob("*.py"), *(package / "syntax").rglob("*.py")]):
        whole.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def verdict_key(submission: Submission, *how: str) -> str:
    """Two attempts with one key get one verdict. `how` is everything that was asked for beside the workspace."""
    odd = [(entry.path, entry.reason) for entry in submission.excluded]
    parts = [
        _verifier_digest(),
        submission.loaded_task.digest,
        submission.workspace.digest,
        json.dumps([submission.links, odd]),
        *how,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class VerdictCache:
    """With no directory nothing is kept."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, name: str) -> Verdict | None:
        if self._directory is None:
            return None
        try:
            kept = Verdict.model_validate_json((self._directory / f"{name}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return kept.model_copy(update={"cached": True})

    def keep(self, name: str, verdict: Verdict) -> None:
        """Only what would come out the same again: never a torn verdict or one that ran out of time."""
        if self._directory is None or verdict.quarantined or verdict.tests.timed_out:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self._directory / f"{name}.json", verdict.model_dump_json().encode())
