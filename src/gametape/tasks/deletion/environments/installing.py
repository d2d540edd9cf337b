"""Install distributions into an environment, from wheels alone, and understand why it did not work."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from gametape.core.errors import Lacking

_OPTIONS = ("--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--quiet")
_MOST_SECONDS = 1800
_UNREACHABLE = re.compile(
    r"Retrying \(|NewConnectionError|Max retries exceeded|Temporary failure in name resolution|"
    r"Network is unreachable|Connection refused|ReadTimeoutError|ConnectTimeoutError|ProxyError|SSLError"
)
_WANTED = re.compile(r"(?:satisfies the requirement|distribution found for) ([A-Za-z0-9][A-Za-z0-9._-]*)")
_BECAUSE_OF = re.compile(r"from ([A-Za-z0-9][A-Za-z0-9._-]*)|->([A-Za-z0-9][A-Za-z0-9._-]*)")


class NotInstallable(Exception):
    """Some requirement has no wheel, or contradicts another. `names` are those it may be due to, canonical."""

    def __init__(self, what: str, line: str, names: tuple[str, ...], conflict: bool) -> None:
        super().__init__(line)
        self.what, self.line, self.names, self.conflict = what, line, names, conflict


def install(interpreter: Path, requirements: Sequence[str], resolved: bool = False) -> None:
    """Install into an environment that has no pip. A `resolved` list is complete: nothing is added to it.

    Raises `NotInstallable`, or `Lacking` if there is no pip or no index.
    """
    if not requirements:
        return
    if importlib.util.find_spec("pip") is None:
        raise Lacking(f"{sys.executable} has no pip to build environments with; {sys.executable} -m ensurepip")
    argv = [sys.executable, "-I", "-m", "pip", "--python", str(interpreter), "install", *_OPTIONS]
    argv += ["--no-deps"] if resolved else []
    try:
        done = subprocess.run(
            [*argv, *requirements],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MOST_SECONDS,
            cwd="/",
            close_fds=False,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Lacking(f"installing took more than {_MOST_SECONDS} s; try again where the index answers") from error
    if done.returncode:
        raise _understood(done.stdout + done.stderr)


def _understood(text: str) -> NotInstallable | Lacking:
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    last = (errors or text.strip().splitlines() or ["pip gave no reason"])[-1].strip()
    if _UNREACHABLE.search(text):
        return Lacking(
            f"the package index cannot be reached to build an environment ({last}); try again, or give --python"
        )
    if "No space left" in text:
        return Lacking(f"no room to build an environment ({last}): free some space and try again")
    conflict = "ResolutionImpossible" in text or "conflicting dependencies" in text
    wanted = _WANTED.search(text)
    what = wanted[1] if wanted else "what is required"
    line = next((error for error in errors if wanted and wanted[1] in error), last)
    causes = [name for found in _BECAUSE_OF.findall(line) for name in found if name and name != "versions"]
    return NotInstallable(what, line, tuple(canonicalize_name(name) for name in (what, *causes)), conflict)
