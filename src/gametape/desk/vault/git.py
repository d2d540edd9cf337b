"""Git as a tool of ours: no hook, no configuration but the repository's own, no pager, no question, no network unless
it is asked for."""

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput, MissingDependency
from gametape.record.errors import OutOfDiskSpace

_SECONDS = 120.0
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.symlinks": "false",
    "core.pager": "cat",
    "core.quotePath": "false",
    "core.sshCommand": "ssh -o BatchMode=yes",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
    "color.ui": "never",
    "credential.helper": "",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
}
_REACHABLE = ("file", "https", "ssh")
_PASSED_ON = ("PATH", "TMPDIR", "SSH_AUTH_SOCK")
_PLAIN = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


class GitError(BadInput):
    """Git said no. `said` is all it said."""

    def __init__(self, words: Sequence[str], said: str) -> None:
        self.stderr = said.strip()
        first = next((line for line in self.stderr.splitlines() if line.strip()), "it failed")
        super().__init__(f"git {words[0]}: {first.removeprefix('fatal: ')[:300]}")


@dataclass(frozen=True)
class Git:
    """The git of one repository, whose directory and work tree are named and never searched for."""

    root: Path

    @property
    def directory(self) -> Path:
        return self.root / ".git"

    def __call__(
        self,
        *words: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        network: bool = False,
    ) -> bytes:
        """What git prints. Raises `GitError` where it fails, and `OutOfDiskSpace` where that is for a full disk."""
        done = self._run(words, given, environment, network)
        if done.returncode != 0:
            trouble = GitError(words, done.stderr.decode("utf-8", "replace"))
            if os.strerror(errno.ENOSPC) in trouble.stderr:
                raise OutOfDiskSpace(f"{self.root}: {trouble}: free some space and try again")
            raise trouble
        return done.stdout

    def ask(self, *words: str) -> tuple[int, bytes]:
        """The code that git ends with and what it prints, where a code is an answer."""
        done = self._run(words, b"", None, network=False)
        return done.returncode, done.stdout

    def _run(
        self, words: Sequence[str], given: bytes, environment: Mapping[str, str] | None, network: bool
    ) -> "subprocess.CompletedProcess[bytes]":
        place = [f"--git-dir={self.directory}", f"--work-tree={self.root}"]
        command = ["git", "--no-pager", "--literal-pathspecs", *place, *_options(), *words]
        around = _surroundings(network) | dict(environment or {})
        try:
            return subprocess.run(
                command, input=given, capture_output=True, env=around, cwd=self.root, timeout=_SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise MissingDependency("the vault needs git, which is not installed; type: apt-get install git") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(words, f"did not end within {_SECONDS:g} seconds") from error


def _options() -> list[str]:
    return [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]


def _surroundings(network: bool) -> dict[str, str]:
    """Of our own variables only those that git cannot do without. Which transports there are is said here, where no
    configuration can say otherwise."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    reachable = ":".join(_REACHABLE) if network else "none"
    return {**_PLAIN, "GIT_ALLOW_PROTOCOL": reachable, "HOME": os.environ.get("HOME", "/"), **passed}
