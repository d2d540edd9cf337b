"""Verdicts kept on disk, under a hash of everything they depend on: task, workspace, sandbox policy and verifier."""

import functools
import hashlib
import json
import re
from pathlib import Path

from pydantic import ValidationError

from gametape.core.verdict import Verdict
from gametape.record.atomic import write_atomically
from gametape.verify.submission import Submission

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+gametape\.(\w+)", re.MULTILINE)


def verdict_sources() -> list[Path]:
    """Every file of the package `verify` and of the packages that it imports, directly or through another one."""
    root = Path(__file__).resolve().parents[1]
    by_package: dict[str, list[Path]] = {}
    waiting = ["verify"]
    while waiting:
        package = waiting.pop()
        if package not in by_package:
            by_package[package] = sorted((root / package).rglob("*.py")) or [root / f"{package}.py"]
            waiting += [name.decode() for path in by_package[package] for name in _IMPORT.findall(path.read_bytes())]
    return [path for package in sorted(by_package) for path in by_package[package]]


@functools.cache
def _verifier_digest() -> str:
    """Identifies this verifier: a changed rule or layer may give another verdict."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in verdict_sources():
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def verdict_key(submission: Submission, *request: str) -> str:
    """Two submissions with one key get one verdict. `request` is everything that was asked for beside the workspace."""
    excluded = [(entry.path, entry.reason) for entry in submission.excluded]
    parts = [
        _verifier_digest(),
        submission.loaded_task.digest,
        submission.workspace.digest,
        json.dumps([submission.links, excluded]),
        *request,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class VerdictCache:
    """With no directory nothing is kept."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, key: str) -> Verdict | None:
        if self._directory is None:
            return None
        try:
            verdict = Verdict.model_validate_json((self._directory / f"{key}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return verdict.model_copy(update={"cached": True})

    def keep(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict that would come out the same again: never a quarantined one or one that ran out of time."""
        if self._directory is None or verdict.quarantined or verdict.tests.timed_out:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self._directory / f"{key}.json", verdict.model_dump_json().encode())
