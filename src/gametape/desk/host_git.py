"""Git on the host, in a repository that a stranger may have prepared: nothing that its configuration names is run.

Hooks and monitors are turned off. So is every transport: a repository that says of itself that objects are elsewhere
would otherwise have git fetch them, with a program of its choice.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_OFF = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
}
_AROUND = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


def host_git(
    directory: Path, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run it. Raises `FileNotFoundError` where git is not installed."""
    settings = [word for name, value in _OFF.items() for word in ("-c", f"{name}={value}")]
    ours = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(
        ["git", "--no-pager", "-C", str(directory), *settings, *arguments],
        input=data,
        capture_output=True,
        check=False,
        env={**ours, **_AROUND, **(env or {})},
    )
