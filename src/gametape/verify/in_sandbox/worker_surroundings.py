"""The surroundings of the code in the worker: as the test has them, and what the code does to them.

The effects of a call are what a test can see of it beside its answer: `warnings` that were issued, log `records`, the
`files` that changed in the scratch directories, and changes of the `environment` and of log `levels`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .scratch_files import FileRecord
from .workspace_files import SCRATCH, clear_scratch

_MOST_NOTICES = 1000
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.link"})
_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "sqlite3.connect", "os.fork"})
_CODE = (".py", ".pyc", ".pyo")
_ENVIRONMENT = os.environ
_RAW_ENVIRONMENT: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
_getcwd, _chdir = os.getcwd, os.chdir


class _Records(logging.Handler):
    """Collects log records as data."""

    def __init__(self) -> None:
        super().__init__()
        self.collected: list[tuple[str, int, str, BaseException | None]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.collected) >= _MOST_NOTICES:
            return
        try:
            text = record.getMessage()
        except Exception as error:
            text = f"{record.msg}: {error}"
        raised = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        self.collected.append((str(record.name), int(record.levelno), text, raised))


class _Names(Iterator[str]):
    """Names for temporary files: the same ones in every run."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def __next__(self) -> str:
        return f"c{next(self._numbers):07d}"


_SAID_ON_COLLECTION = (("", ResourceWarning), ("coroutine .* was never awaited", RuntimeWarning))
"""Warnings that come when garbage is collected: in the middle of another test as well as of their own."""


class WorkerSurroundings:
    """One for each worker. `reset` forgets what one test process did."""

    def __init__(self) -> None:
        self._scratch: tuple[str, ...] = ()
        self._workspace: str | None = None
        self._files = FileRecord()
        self._uses_workspace = False
        self._warnings: list[Any] = []
        self._records = _Records()
        self._environment = dict(_RAW_ENVIRONMENT)
        self._levels: dict[str, int] = {}
        self._uses_scratch = False
        self._path: list[str] = []
        self._listens = False
        self._left: set[str] = set()
        """What was written into the workspace."""

    def listen(self) -> None:
        """Collect warnings and log records from now on."""
        if not self._listens:
            self._listens = True
            warnings.simplefilter("always")
            for message, category in _SAID_ON_COLLECTION:
                warnings.filterwarnings("ignore", message, category)
            warnings.showwarning = self._show_warning
            logging.root.addHandler(self._records)
            sys.addaudithook(self._note_changes)
        tempfile._name_sequence = _Names()  # type: ignore[attr-defined]
        self._environment = dict(_RAW_ENVIRONMENT)
        self._levels = _log_levels()

    def share(self, scratch: tuple[str, ...], workspace: str | None) -> None:
        """Share files below these directories with the test process."""
        self._scratch, self._workspace = scratch, workspace
        self._files.take_for_known(scratch)

    def reset(self) -> None:
        """Take back what a test process and the code did to files, levels, import path and standard input."""
        if self._uses_scratch and self._scratch == SCRATCH:
            clear_scratch()
        for path in sorted(self._left, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        self._left.clear()
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        for name in _log_levels():
            _set_level(name, logging.NOTSET)
        for entry in self._path:
            with contextlib.suppress(ValueError):
                sys.path.remove(entry)
        self._path = []
        self._files = FileRecord()
        self._uses_workspace = self._uses_scratch = False
        self._warnings.clear()
        self._records.collected.clear()
        tempfile.tempdir = None

    def change(self, changes: dict[str, Any]) -> None:
        """Make the changes that the test made on its side."""
        for name, value in changes.items():
            action: Callable[[Any], None] = getattr(self, f"_change_{name}")
            action(value)
        self._environment = dict(_RAW_ENVIRONMENT)
        self._levels = _log_levels()

    def _change_environment(self, changes: dict[str, str | None]) -> None:
        for name, value in changes.items():
            if value is None:
                _ENVIRONMENT.pop(name, None)
            else:
                _ENVIRONMENT[name] = value
        tempfile.tempdir = None

    def _change_files(self, changes: list[Any]) -> None:
        roots = self._scratch if self._workspace is None else (*self._scratch, self._workspace)
        self._uses_scratch = True
        for change in changes:
            with contextlib.suppress(OSError):
                self._note_left(change[0])
                self._files.apply(change, roots)

    def _change_directory(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        _chdir(directory)

    def _change_path(self, entries: list[str]) -> None:
        sys.path[:0] = entries
        self._path += entries

    def _change_stdin(self, text: tuple[str]) -> None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(text[0].encode("utf-8", "surrogatepass")), "utf-8")

    def _change_levels(self, levels: dict[str, int]) -> None:
        for name, level in levels.items():
            _set_level(name, level)

    def _change_seed(self, arguments: tuple[Any, ...]) -> None:
        random.seed(*arguments)

    def effects(self) -> dict[str, Any]:
        """What the code did since the last answer."""
        effects: dict[str, Any] = {}
        if self._warnings:
            effects["warnings"], self._warnings = self._warnings, []
        if self._records.collected:
            effects["records"], self._records.collected = self._records.collected, []
        if self._uses_scratch:
            tops = [*self._scratch, self._workspace] if self._uses_workspace and self._workspace else self._scratch
            if files := self._files.changes(tops, self._is_of_interest):
                effects["files"] = files
                for path, _ in files:
                    self._note_left(path)
        if self._environment != _RAW_ENVIRONMENT:
            before, self._environment = self._environment, dict(_RAW_ENVIRONMENT)
            changed: dict[str, str | None] = {
                os.fsdecode(name): None for name in before.keys() - self._environment.keys()
            }
            for name, value in self._environment.items():
                if before.get(name) != value:
                    changed[os.fsdecode(name)] = os.fsdecode(value)
            effects["environment"] = dict(sorted(changed.items()))
        levels = _log_levels()
        if levels != self._levels:
            effects["levels"] = {
                **{name: level for name, level in levels.items() if self._levels.get(name) != level},
                **dict.fromkeys(self._levels.keys() - levels.keys(), 0),
            }
            self._levels = levels
        return effects

    def _note_left(self, path: str) -> None:
        if self._workspace is not None and path.startswith(f"{self._workspace}/"):
            self._left.add(path)

    def _is_of_interest(self, path: str, _: bool) -> bool:
        if self._workspace is not None and path.startswith(f"{self._workspace}/"):
            return not path.endswith(_CODE) and "/__pycache__" not in path
        return path not in self._scratch

    def _note_changes(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Scratch directories and workspace are looked through only once something may have been written there."""
        if (self._uses_workspace and self._uses_scratch) or self._workspace is None:
            return
        if event == "open":
            path, _, flags = arguments
            if not (isinstance(path, str) and isinstance(flags, int) and flags & _WRITES):
                return
        elif event in _CHANGES and arguments:
            path = os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes, os.PathLike)) else ""
        elif event in _PROGRAMS:
            path = _getcwd()
        else:
            return
        whole = os.path.abspath(path)
        self._uses_scratch = self._uses_scratch or event in _PROGRAMS or whole.startswith(self._scratch)
        if whole == self._workspace or whole.startswith(f"{self._workspace}/"):
            self._uses_workspace = True
            self._files.take_for_known([self._workspace])

    def _show_warning(self, message: Any, category: Any, *_: Any, **__: Any) -> None:
        if len(self._warnings) < _MOST_NOTICES:
            self._warnings.append(message if isinstance(message, Warning) else category(message))


def _log_levels() -> dict[str, int]:
    loggers = logging.root.manager.loggerDict
    levels = {name: logger.level for name, logger in loggers.items() if isinstance(logger, logging.Logger)}
    levels = {name: level for name, level in levels.items() if level}
    if logging.root.level != logging.WARNING:
        levels["root"] = logging.root.level
    return levels


def _set_level(name: str, level: int) -> None:
    if name == "root":
        logging.root.setLevel(level or logging.WARNING)
    elif name == "disable":
        logging.disable(level)
    else:
        logging.getLogger(name).setLevel(level)
