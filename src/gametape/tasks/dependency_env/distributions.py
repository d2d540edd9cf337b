"""The distributions of an environment: read, remove and label them as files, and install them with gametape's own pip.

No code of the environment runs: its interpreter is never started here.
"""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from gametape.core.errors import MissingDependency
from gametape.core.task import Origin
from gametape.tasks.project import ProjectRefused

_STARTS_WITH_PYTHON = ("sitecustomize", "usercustomize")


@dataclass(frozen=True)
class InstalledDistribution:
    """A distribution, and its files relative to site-packages."""

    name: str
    version: str
    files: tuple[PurePosixPath, ...]

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


def site_packages(interpreter: Path) -> Path:
    return interpreter.parent.parent / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def read_installed(interpreter: Path) -> list[InstalledDistribution]:
    """Every distribution, by name."""
    distributions = importlib.metadata.distributions(path=[str(site_packages(interpreter))])
    installed = [
        InstalledDistribution(distribution.metadata["Name"], distribution.version, tuple(distribution.files or ()))
        for distribution in distributions
    ]
    return sorted(installed, key=lambda distribution: canonicalize_name(distribution.name))


def remove_distribution(interpreter: Path, distribution: InstalledDistribution) -> None:
    """Delete the files of a distribution. Files outside the environment stay, even if its RECORD lists them."""
    directory = site_packages(interpreter)
    environment = interpreter.parent.parent.resolve()
    for file in distribution.files:
        path = directory / file
        if path.parent.resolve().is_relative_to(environment):
            path.unlink(missing_ok=True)
            _remove_empty(path.parent, directory)


def _remove_empty(path: Path, top: Path) -> None:
    while path != top and top in path.parents and path.is_dir() and not any(path.iterdir()):
        path.rmdir()
        path = path.parent


def remove_startup_code(interpreter: Path) -> None:
    """Delete code that runs whenever the interpreter starts, outside any sandbox, and refuse a replaced interpreter.

    Such code is in `.pth` files with import lines, and in `sitecustomize` and `usercustomize`.
    """
    directory = site_packages(interpreter)
    for path in directory.glob("*.pth"):
        lines = path.read_bytes().splitlines(keepends=True)
        harmless = [line for line in lines if not line.lstrip(b"\xef\xbb\xbf").startswith((b"import ", b"import\t"))]
        if harmless != lines:
            path.write_bytes(b"".join(harmless)) if any(line.strip() for line in harmless) else path.unlink()
    for path in _startup_modules(directory):
        path.unlink()
    expected = Path(sys.base_prefix).resolve()
    if (
        not interpreter.is_symlink()
        or not interpreter.resolve().is_relative_to(expected)
        or not _has_our_base(interpreter)
    ):
        raise ProjectRefused("environment", "one of the requirements replaces the interpreter it is installed for")


def _startup_modules(directory: Path) -> Iterator[Path]:
    for name in _STARTS_WITH_PYTHON:
        yield from (path for path in directory.glob(f"{name}*") if path.is_file())
        yield from (path for path in directory.glob(f"{name}/*") if path.is_file())


def _has_our_base(interpreter: Path) -> bool:
    """Whether `pyvenv.cfg` still names our base Python: an installed file may have replaced it."""
    settings = (interpreter.parent.parent / "pyvenv.cfg").read_text(errors="replace")
    home = re.search(r"^home *= *(.+)$", settings, re.MULTILINE)
    return home is not None and Path(home[1].strip()).resolve().is_relative_to(Path(sys.base_prefix).resolve())


def name_only_metadata(origin: Origin) -> dict[str, str]:
    """The metadata files of a distribution without modules, for programs that read their own version."""
    stem = re.sub(r"[^A-Za-z0-9.]+", "_", origin.name)
    version = re.sub(r"[^A-Za-z0-9.+!]+", "_", origin.version)
    directory = f"{stem}-{version}.dist-info"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {_line(origin.name)}\nVersion: {_line(origin.version)}\n",
        "INSTALLER": "gametape\n",
    }
    texts["RECORD"] = "".join(f"{directory}/{file},,\n" for file in (*texts, "RECORD"))
    return {f"{directory}/{file}": text for file, text in texts.items()}


def _line(text: str) -> str:
    return " ".join(text.split())


def write_name_only_metadata(interpreter: Path, origin: Origin) -> None:
    for name, text in name_only_metadata(origin).items():
        path = site_packages(interpreter) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


_OPTIONS = ("--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--quiet")
_MOST_SECONDS = 1800
_UNREACHABLE = re.compile(
    r"Retrying \(|NewConnectionError|Max retries exceeded|Temporary failure in name resolution|"
    r"Network is unreachable|Connection refused|ReadTimeoutError|ConnectTimeoutError|ProxyError|SSLError"
)
_WANTED = re.compile(r"(?:satisfies the requirement|distribution found for) ([A-Za-z0-9][A-Za-z0-9._-]*)")
_BECAUSE_OF = re.compile(r"from ([A-Za-z0-9][A-Za-z0-9._-]*)|->([A-Za-z0-9][A-Za-z0-9._-]*)")


class NotInstallableError(Exception):
    """A requirement has no wheel, or contradicts another. `names` are the possible culprits, canonical."""

    def __init__(self, what: str, line: str, names: tuple[str, ...], conflict: bool) -> None:
        super().__init__(line)
        self.what, self.line, self.names, self.conflict = what, line, names, conflict


def install_distributions(interpreter: Path, requirements: Sequence[str], resolved: bool = False) -> None:
    """Install into an environment that has no pip. A `resolved` list is complete: pip adds no dependencies to it.

    Raises `NotInstallableError`, or `MissingDependency` if gametape has no pip or no index can be reached.
    """
    if not requirements:
        return
    if importlib.util.find_spec("pip") is None:
        raise MissingDependency(
            f"{sys.executable} has no pip to build environments with; {sys.executable} -m ensurepip"
        )
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
        raise MissingDependency(
            f"installing took more than {_MOST_SECONDS} s; try again where the index answers"
        ) from error
    if done.returncode:
        raise _pip_error(done.stdout + done.stderr)


def _pip_error(text: str) -> NotInstallableError | MissingDependency:
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    last = (errors or text.strip().splitlines() or ["pip gave no reason"])[-1].strip()
    if _UNREACHABLE.search(text):
        return MissingDependency(
            f"the package index cannot be reached to build an environment ({last}); try again, or give --python"
        )
    if "No space left" in text:
        return MissingDependency(f"no room to build an environment ({last}): free some space and try again")
    conflict = "ResolutionImpossible" in text or "conflicting dependencies" in text
    wanted = _WANTED.search(text)
    what = wanted[1] if wanted else "what is required"
    line = next((error for error in errors if wanted and wanted[1] in error), last)
    causes = [name for names in _BECAUSE_OF.findall(line) for name in names if name and name != "versions"]
    return NotInstallableError(what, line, tuple(canonicalize_name(name) for name in (what, *causes)), conflict)
