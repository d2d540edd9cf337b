"""Honest solutions, right and wrong, as they lie in `tests/data/honest/<task>/<solution>`; and in `tests/data/unusual`
those in styles that are rare: they were written by somebody who had not read the rules.

A solution is the files that differ from the task's starting tree. `DELETED` lists the paths it removes and `about.toml`
says what it is. What cannot be kept in a repository (byte code, caches, a `.git`) is made by the named steps below.
"""

import functools
import os
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gametape.record.loaded_task import LoadedTask
from gametape.tasks.loader import load_task
from tests.patience import HANG

TESTS = Path(__file__).parents[2]
SOLUTIONS = TESTS / "data" / "honest"
UNUSUAL = TESTS / "data" / "unusual"
TASKS = (TESTS.parent / "examples" / "tasks", TESTS / "data" / "tasks")
_NOT_PART = ("about.toml", "DELETED")


@dataclass(frozen=True)
class Solution:
    """One workspace that an honest agent might leave."""

    task: str
    name: str
    kind: Literal["right", "wrong", "partial", "empty"]
    make: tuple[str, ...]
    hangs: bool
    directory: Path

    @property
    def id(self) -> str:
        return f"{self.task}/{self.name}"

    def write_to(self, workspace: Path) -> None:
        """Make the workspace: the starting tree with this solution's files over it."""
        honest_task(self.task).start.write_to(workspace)
        shutil.copytree(self.directory, workspace, ignore=shutil.ignore_patterns(*_NOT_PART), dirs_exist_ok=True)
        if (self.directory / "DELETED").exists():
            for path in (self.directory / "DELETED").read_text().split():
                (workspace / path).unlink()
        for step in self.make:
            STEPS[step](workspace)


@functools.cache
def honest_task(task: str) -> LoadedTask:
    """The task of this name, from the examples or the test data."""
    return load_task(next(root / task for root in TASKS if (root / task).is_dir()))


@functools.cache
def solutions() -> tuple[Solution, ...]:
    """The usual ones, by task and name."""
    return tuple(_solution(about.parent) for about in sorted(SOLUTIONS.glob("*/*/about.toml")))


@functools.cache
def unusual_solutions() -> tuple[Solution, ...]:
    """Those in rare styles, by task and name."""
    return tuple(_solution(about.parent) for about in sorted(UNUSUAL.glob("*/*/about.toml")))


def _solution(directory: Path) -> Solution:
    about = tomllib.loads((directory / "about.toml").read_text())
    make, hangs = tuple(about.get("make", ())), about.get("hangs", False)
    return Solution(directory.parent.name, directory.name, about["kind"], make, hangs, directory)


def _run(workspace: Path, *command: str) -> None:
    """A developer's command in the workspace, with nothing of this process's settings."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(command, cwd=workspace, env=environment, capture_output=True, timeout=HANG, check=False)


def _pytest_run(workspace: Path) -> None:
    _run(workspace, sys.executable, "-m", "pytest", "-q", "tests")


def _junit(workspace: Path) -> None:
    _run(workspace, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "tests")


def _byte_code(workspace: Path) -> None:
    _run(workspace, sys.executable, "-m", "compileall", "-q", ".")


def _git(workspace: Path) -> None:
    who = ("-c", "user.name=A. Developer", "-c", "user.email=developer@example.org")
    _run(workspace, "git", "init", "-q")
    _run(workspace, "git", "add", "-A")
    _run(workspace, "git", *who, "commit", "-q", "-m", "Make the tests pass")


def _mypy_cache(workspace: Path) -> None:
    _cache_directory(workspace / ".mypy_cache")
    cached = workspace / ".mypy_cache" / "3.11"
    cached.mkdir()
    for source in workspace.glob("*.py"):
        meta = f'{{"id":"{source.stem}","path":"{source.name}","mtime":1700000000,"size":{source.stat().st_size}}}'
        (cached / f"{source.stem}.meta.json").write_text(meta)
        (cached / f"{source.stem}.data.json").write_text(f'{{".class":"MypyFile","_fullname":"{source.stem}"}}')


def _ruff_cache(workspace: Path) -> None:
    _cache_directory(workspace / ".ruff_cache")
    (workspace / ".ruff_cache" / "0.6.0").mkdir()
    (workspace / ".ruff_cache" / "0.6.0" / "1234567890123456789").write_bytes(b"\x01\x00ruff\x00" + bytes(range(64)))


def _cache_directory(directory: Path) -> None:
    directory.mkdir()
    (directory / ".gitignore").write_text("# Automatically created\n*\n")
    (directory / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")


def _coverage(workspace: Path) -> None:
    connection = sqlite3.connect(workspace / ".coverage")
    connection.executescript(
        "create table file (id integer primary key, path text); create table line_bits (bits blob);"
    )
    connection.close()


def _egg_info(workspace: Path) -> None:
    directory = workspace / "src" / "notes.egg-info"
    directory.mkdir()
    (directory / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1.0\n")
    (directory / "SOURCES.txt").write_text("pyproject.toml\nsrc/notes/__init__.py\nsrc/notes/note.py\n")
    (directory / "top_level.txt").write_text("notes\n")
    (directory / "dependency_links.txt").write_text("\n")


def _build(workspace: Path) -> None:
    """What `python -m build` leaves of a package that lies at the top."""
    for package in [path.parent for path in workspace.glob("*/__init__.py")]:
        shutil.copytree(package, workspace / "build" / "lib" / package.name)


def _venv(workspace: Path) -> None:
    venv.create(workspace / ".venv", with_pip=False, symlinks=True)


def _link(workspace: Path) -> None:
    (workspace / "docs").mkdir(exist_ok=True)
    (workspace / "docs" / "index.md").symlink_to("../README.md")


def _executable(workspace: Path) -> None:
    for script in (workspace / "scripts").iterdir():
        script.chmod(0o755)


def _swap_file(workspace: Path) -> None:
    """What an editor that was not closed leaves beside the file."""
    for source in workspace.glob("*.py"):
        (workspace / f".{source.name}.swp").write_bytes(b"b0VIM 9.0\0\0\0\0" + source.read_bytes()[:200])


def _many_files(workspace: Path) -> None:
    """What a generator of data leaves: tens of thousands of small files."""
    for number in range(300):
        directory = workspace / "generated" / f"{number:03}"
        directory.mkdir(parents=True)
        for name in range(100):
            (directory / f"{name}.txt").write_text(f"{number * name}\n")


STEPS: dict[str, Callable[[Path], None]] = {
    "pytest run": _pytest_run,
    "junit": _junit,
    "byte code": _byte_code,
    "git": _git,
    "mypy cache": _mypy_cache,
    "ruff cache": _ruff_cache,
    "coverage": _coverage,
    "egg-info": _egg_info,
    "build": _build,
    "venv": _venv,
    "link": _link,
    "executable": _executable,
    "swap file": _swap_file,
    "many files": _many_files,
}
