"""Git on the host, in a repository that somebody else may have prepared: none of the programs that it names is run.

Hooks and monitors are turned off. So is every transport: a repository can declare that its objects are elsewhere, and
git would then fetch them with a program of that repository's choice.
"""

import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gametape.core.errors import BadInput, MissingDependency
from gametape.record.errors import OutOfDiskSpace

SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
}
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


_ROOM = 1 << 16


class GitError(BadInput):
    """Git failed. `stderr` is all that it printed about it."""

    def __init__(self, directory: Path, words: Sequence[str], stderr: str) -> None:
        self.stderr = stderr.strip()
        first = next((line for line in self.stderr.splitlines() if line.strip()), "it failed")
        super().__init__(f"{directory}: git {words[0]}: {first.removeprefix('fatal: ')[:300]}")


@dataclass(frozen=True)
class HostGit:
    """Git in one directory. Apart from `SETTINGS`, the user's own configuration holds."""

    directory: Path
    settings: ClassVar[Mapping[str, str]] = SETTINGS
    max_seconds: ClassVar[float] = 300.0

    def __call__(self, *words: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What git prints. Raises `GitError` where it fails, and `OutOfDiskSpace` where the disk is full."""
        done = self._run(words, data, env)
        if done.returncode != 0:
            error = GitError(self.directory, words, done.stderr.decode("utf-8", "replace"))
            if os.strerror(errno.ENOSPC) in error.stderr or _has_no_room(self.directory):
                raise OutOfDiskSpace(f"{error}: free some space and try again")
            raise error
        return done.stdout

    def text(self, *words: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """What git prints, decoded, without the last line break."""
        return self(*words, data=data, env=env).decode("utf-8", "surrogateescape").removesuffix("\n")

    def ask(self, *words: str, data: bytes = b"") -> tuple[int, bytes]:
        """The exit code and what git prints, for commands whose exit code is an answer."""
        done = self._run(words, data, None)
        return done.returncode, done.stdout

    def _run(
        self, words: Sequence[str], data: bytes, env: Mapping[str, str] | None
    ) -> "subprocess.CompletedProcess[bytes]":
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        try:
            return subprocess.run(
                ["git", "--no-pager", *self._location(), *settings, *words],
                input=data,
                capture_output=True,
                check=False,
                env={**self._environment(), **(env or {})},
                timeout=self.max_seconds,
            )
        except FileNotFoundError:
            raise MissingDependency("git is not installed; type: apt-get install git") from None
        except subprocess.TimeoutExpired as error:
            raise GitError(self.directory, words, f"did not end within {self.max_seconds:g} seconds") from error

    def _location(self) -> list[str]:
        return ["-C", str(self.directory)]

    def _environment(self) -> dict[str, str]:
        return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | _ENVIRONMENT


def _has_no_room(directory: Path) -> bool:
    """Whether there is no room for what git writes at once; it does not always say why it failed."""
    try:
        return shutil.disk_usage(directory).free < _ROOM
    except OSError:
        return False


def blob_id(content: bytes) -> str:
    """The id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
