"""Findings in a task's own trees, kept on disk for every process that verifies the task.

An entry is a directory that is renamed into place once it is complete. It records a hash of the type checker's cache;
an entry that does not match its hash is replaced.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.verify.static_analysis.findings import FindingKey

_FACTS, _CACHE = "facts.json", "cache"


@dataclass(frozen=True)
class ToolBaseline:
    """Findings that do not count against a submission; None where a tool cannot check the task's own trees."""

    types: Counter[FindingKey] | None
    lint: Counter[FindingKey] | None


class BaselineStore:
    """Baselines by task, for one version of the tools and their settings."""

    def __init__(self, directory: Path, settings: Sequence[str]) -> None:
        self._directory = directory
        self._settings = "\n".join(settings)

    def find(self, digest: str) -> tuple[ToolBaseline, Path] | None:
        entry = self._entry(digest)
        try:
            facts = json.loads((entry / _FACTS).read_text(encoding="utf-8"))
            baseline = ToolBaseline(_counter(facts["types"]), _counter(facts["lint"]))
            intact = facts["cache"] == _hash(entry / _CACHE)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return (baseline, entry / _CACHE) if intact else None

    def keep(self, digest: str, baseline: ToolBaseline, cache: Path) -> tuple[ToolBaseline, Path | None]:
        """Store a baseline. An intact entry of another process stays; a broken one is replaced."""
        self._directory.mkdir(parents=True, exist_ok=True)
        entry = self._entry(digest)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=self._directory))
        try:
            (new / _CACHE).mkdir()
            if cache.is_dir():
                shutil.copytree(cache, new / _CACHE, dirs_exist_ok=True)
            facts = {"types": _rows(baseline.types), "lint": _rows(baseline.lint), "cache": _hash(new / _CACHE)}
            (new / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
            for _ in range(3):
                with contextlib.suppress(OSError):
                    os.rename(new, entry)
                    break
                if (stored := self.find(digest)) is not None:
                    return stored
                self._clear(entry)
            return self.find(digest) or (baseline, None)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _clear(self, entry: Path) -> None:
        trash = Path(tempfile.mkdtemp(prefix=".old-", dir=self._directory))
        with contextlib.suppress(OSError):  # another process may be removing it too
            os.rename(entry, trash / "entry")
        shutil.rmtree(trash, ignore_errors=True)

    def _entry(self, digest: str) -> Path:
        return self._directory / hashlib.sha256(f"{digest}\n{self._settings}".encode()).hexdigest()[:40]


def _rows(counter: Counter[FindingKey] | None) -> list[list[Any]] | None:
    return None if counter is None else [[*key, number] for key, number in counter.items()]


def _counter(rows: Any) -> Counter[FindingKey] | None:
    if rows is None:
        return None
    return Counter({(str(file), str(code), str(message)): int(number) for file, code, message, number in rows})


def _hash(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(directory)} {content}\n".encode())
    return digest.hexdigest()
