"""Git in a vault. Beside what `HostGit` turns off, only the vault's own configuration holds, and a transport is used
only where a command asks for it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gametape.desk.host_git import SETTINGS, HostGit

NETWORK = {"GIT_ALLOW_PROTOCOL": "file:https:ssh"}
"""The environment of a command that may talk to a remote. No configuration can allow more."""
_PASSED_ON = ("PATH", "TMPDIR", "SSH_AUTH_SOCK")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


class VaultGit(HostGit):
    """The git of one vault, whose directory and work tree are named and never searched for."""

    settings: ClassVar[Mapping[str, str]] = SETTINGS | {
        "core.untrackedCache": "false",
        "core.attributesFile": "/dev/null",
        "core.excludesFile": "/dev/null",
        "core.autocrlf": "false",
        "core.symlinks": "false",
        "core.pager": "cat",
        "core.quotePath": "false",
        "core.sshCommand": "ssh -o BatchMode=yes",
        "commit.gpgSign": "false",
        "color.ui": "never",
        "credential.helper": "",
        "submodule.recurse": "false",
        "fetch.recurseSubmodules": "false",
    }
    max_seconds: ClassVar[float] = 120.0

    @property
    def git_directory(self) -> Path:
        return self.directory / ".git"

    def _location(self) -> list[str]:
        location = [f"--git-dir={self.git_directory}", f"--work-tree={self.directory}"]
        return ["--literal-pathspecs", "-C", str(self.directory), *location]

    def _environment(self) -> dict[str, str]:
        """Of this process's variables only those that git cannot do without."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {**_ENVIRONMENT, "HOME": os.environ.get("HOME", "/"), **passed}
