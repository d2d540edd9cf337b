"""What is installed in an environment, read and changed as files: no interpreter has to be asked, so nothing runs."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from gametape.core.task import Origin
from gametape.tasks.deletion.project import Refused

_STARTS_WITH_PYTHON = ("sitecustomize", "usercustomize")


@dataclass(frozen=True)
class Installed:
    """A distribution, and its files relative to site-packages."""

    name: str
    version: str
    files: tuple[PurePosixPath, ...]

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


def packages_directory(interpreter: Path) -> Path:
    return interpreter.parent.parent / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def read_installed(interpreter: Path) -> list[Installed]:
    """Every distribution, by name."""
    found = importlib.metadata.distributions(path=[str(packages_directory(interpreter))])
    read = [Installed(one.metadata["Name"], one.version, tuple(one.files or ())) for one in found]
    return sorted(read, key=lambda one: canonicalize_name(one.name))


def remove(interpreter: Path, distribution: Installed) -> None:
    """Take a distribution away, file by file; nothing outside the environment, whatever its list says."""
    directory = packages_directory(interpreter)
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


def clean(interpreter: Path) -> None:
    """Take away what would run whenever the interpreter starts, outside any sandbox, and refuse one that was replaced.

    These are `.pth` files that import something, and modules that customise every start.
    """
    directory = packages_directory(interpreter)
    for path in directory.glob("*.pth"):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not line.lstrip(b"\xef\xbb\xbf").startswith((b"import ", b"import\t"))]
        if kept != lines:
            path.write_bytes(b"".join(kept)) if any(line.strip() for line in kept) else path.unlink()
    for path in _customisers(directory):
        path.unlink()
    expected = Path(sys.base_prefix).resolve()
    if not interpreter.is_symlink() or not interpreter.resolve().is_relative_to(expected) or not _is_ours(interpreter):
        raise Refused("environment", "one of the requirements replaces the interpreter it is installed for")


def _customisers(directory: Path) -> Iterator[Path]:
    for name in _STARTS_WITH_PYTHON:
        yield from (path for path in directory.glob(f"{name}*") if path.is_file())
        yield from (path for path in directory.glob(f"{name}/*") if path.is_file())


def _is_ours(interpreter: Path) -> bool:
    """Whether the environment still begins where it did: an installed file may take the place of its settings."""
    settings = (interpreter.parent.parent / "pyvenv.cfg").read_text(errors="replace")
    home = re.search(r"^home *= *(.+)$", settings, re.MULTILINE)
    return home is not None and Path(home[1].strip()).resolve().is_relative_to(Path(sys.base_prefix).resolve())


def name_only(origin: Origin) -> dict[str, str]:
    """The files of a distribution that holds nothing but a name and a version, for programs that ask for their own."""
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


def write_name(interpreter: Path, origin: Origin) -> None:
    for name, text in name_only(origin).items():
        path = packages_directory(interpreter) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
