"""Starts workers as root or as an ordinary user, with overlayfs or with copies."""

import functools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import gametape
from gametape.sandbox.snapshots.cleanup import remove_tree
from tests.patience import HANG

USER = 61000
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Setting:
    """Whose store it is and how its views are made."""

    mode: str
    ordinary: bool

    def __str__(self) -> str:
        return f"{self.mode}-{'user' if self.ordinary else 'root'}"


SETTINGS = [Setting("overlay", False), Setting("overlay", True), Setting("copy", False), Setting("copy", True)]


class Trouble(Exception):
    """The store said no; `kind` is the name of its error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Rig:
    """One worker and a directory that it owns. Every public method of `worker.Outside` can be called on it."""

    def __init__(
        self, setting: Setting, max_bytes: int | None = None, root: Path | None = None, disk_mb: int | None = None
    ) -> None:
        if not setting.ordinary and os.geteuid() != 0:
            pytest.skip("only root can do this as root")
        self.setting = setting
        self._made = tempfile.TemporaryDirectory(prefix="rig-", ignore_cleanup_errors=True)
        os.chmod(self._made.name, 0o755)
        self.root = root or Path(self._made.name, "root")
        self.root.mkdir(exist_ok=True)
        if setting.ordinary and os.geteuid() == 0:
            os.chown(self.root, USER, USER)
        command = worker_command(setting.ordinary, "worker", str(self.root), setting.mode)
        if disk_mb:
            script = f'mount -t tmpfs -o size={disk_mb}m tmpfs {self.root} && exec "$@"'
            command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *command]
        if max_bytes is not None:
            command.append(str(max_bytes))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._call, name)

    def _call(self, *words: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the worker is gone"
        answer = json.loads(line)
        if "trouble" in answer:
            raise Trouble(answer["trouble"], answer["text"])
        assert "answer" in answer, answer["error"]
        return answer["answer"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(HANG)
        if self._process.stdout:
            self._process.stdout.close()
        remove_tree(Path(self._made.name))  # a hostile tree may be too deep for the standard library
        self._made.cleanup()


def worker_command(ordinary: bool, module: str, *arguments: str) -> list[str]:
    """A command line that runs a module beside this one, with nothing but the standard library and gametape."""
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if ordinary and os.geteuid() == 0 else []
    setup = f"import sys; sys.path.insert(0, {str(_package())!r}); sys.argv[0] = 'worker'; "
    program = f"{setup}from tests.sandbox.snapshots import {module}; {module}.main()"
    return [*drop, _interpreter(), "-I", "-S", "-B", "-c", program, *arguments]


@functools.cache
def _interpreter() -> str:
    """One that everybody can start."""
    places = (Path(sys.executable).resolve(), *Path(sys.executable).resolve().parents)
    if os.geteuid() != 0 or all(place.stat().st_mode & stat.S_IXOTH for place in places):
        return sys.executable
    return shutil.which("python3", path="/usr/bin:/bin") or pytest.skip("no interpreter that others can start")


@functools.cache
def _package() -> Path:
    """The package and these files, where everybody can read them."""
    place = Path(_kept().name)
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(gametape.__file__).parent, place / "gametape", ignore=skip)
    shutil.copytree(_HERE, place / "tests" / "sandbox" / "snapshots", ignore=skip)
    for directory in (place, place / "tests", place / "tests" / "sandbox"):
        directory.chmod(0o755)
    return place


@functools.cache
def _kept() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="snapshots-")
