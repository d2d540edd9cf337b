"""What surrounds a test: environment, directory, import path, standard input, log levels, random seed, files.

Before a request the worker is told what the test changed since the last one, as a request of its own; a test that
changes nothing sends nothing. After it, what the code changed is done here as well, as far as it can do no harm:

- A file of the test crosses only when the test has named its path, or a directory above it, to the code, and is changed
  or removed here only then. Files of test code never cross.
- A file of the code is written only below the scratch directories, and in the workspace only where none was. It is
  never a file that Python or pytest would read on its own, and Python code from it is not run here.
- An environment variable that can change what other programs run is not set.
- A warning is issued, and a log record handled, as if the test's own line had done it.
"""

from __future__ import annotations

import io
import logging
import os
import random
import re
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .proxy_patches import ModulePatches
from .scratch_files import FileRecord, check_changes, split_path
from .wire import WireError

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_HERE = os.path.dirname(__file__)
_MOST_NAMED = 2000
_MOST_NODES = 2000
_MOST_INPUT = 4 << 20
_MOST_NOTICES = 2000
_HIDDEN_VARIABLES = ("PYTEST_", "PY_COLORS")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_BARRED_VARIABLES = re.compile(
    r"PYTHON|PYTEST|LD_|DYLD_|GCONV|GLIBC|MALLOC|BASH|NODE_|PERL|RUBY|JAVA|_JAVA|GIT_|SSL|OPENSSL|COVERAGE|HYPOTHESIS"
    r"|(PATH|HOME|IFS|ENV|SHELLOPTS|PS4|TMPDIR|TEMP|TMP|LOCPATH|NLSPATH|TERMINFO|EDITOR|PAGER|SHELL|BROWSER)$"
)
_BARRED_NAMES = frozenset(
    {"__pycache__", "conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", ".pytest.ini"}
)
_BARRED_SUFFIXES = (".pyc", ".pyo", ".so", ".pyd", ".pth", ".dll", ".dylib", ".egg-link", ".egg")
_NOT_IN_WORKSPACE = (".py", ".pyi", ".toml", ".ini", ".cfg", ".zip", ".whl")
_PATH_IN_TEXT = re.compile(r"/[^\s'\",;:)\]}>|]+")
_EFFECTS = ("files", "environment", "levels", "warnings", "records")
_ENVIRONMENT = os.environ
_RAW_ENVIRONMENT: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
_getcwd, _exists, _abspath = os.getcwd, os.path.lexists, os.path.abspath


class Surroundings:
    """Keeps the surroundings of a test and of the code alike."""

    def __init__(
        self,
        session: ProxySession,
        served: frozenset[str],
        scratch: tuple[str, ...] = (),
        workspace: str | None = None,
    ) -> None:
        self._session = session
        self._served = frozenset(name.partition(".")[0] for name in served)
        self._scratch = scratch
        self._workspace = workspace
        self._roots = scratch if workspace is None else (*scratch, workspace)
        self._files = FileRecord()
        self._named: set[str] = set()
        self._of_code: set[str] = set()
        self._raw_environment: Any = None
        self._environment = _variables()
        self._directory = _getcwd()
        self._path = list(sys.path)
        self._stdin: Any = None
        self._has_stdin = False
        self._levels = _log_levels()
        self._loop = 0
        self._seed: tuple[Any, ...] | None = None
        self._busy = False
        self._guarded = False
        self._patches: ModulePatches | None = None
        if workspace is not None:
            _note_seeds(self)
            self._patches = ModulePatches(session, served)
        session.surroundings = self

    def before(self, fields: Any) -> None:
        """Tell the worker what changed, before a request with these fields."""
        if self._busy:
            return
        self._busy = True
        try:
            changes = {name: change for name, change in self._changes(fields) if change}
            if changes:
                self._session.ask(words.SURROUND, changes)
            if self._patches is not None:
                self._patches.tell()
        finally:
            self._busy = False

    def _changes(self, fields: Any) -> Any:
        raw = dict(_RAW_ENVIRONMENT)
        environment = self._environment if raw == self._raw_environment else _variables()
        self._raw_environment = raw
        if environment != self._environment:
            changed: dict[str, str | None] = dict.fromkeys(self._environment.keys() - environment.keys())
            changed |= {name: value for name, value in environment.items() if self._environment.get(name) != value}
            self._environment = environment
            self._name(list(changed.values()))
            yield "environment", changed
        if self._roots:
            yield from self._changes_of_files(fields)
        yield "levels", self._changed_levels()
        if sys.stdin is not self._stdin:
            self._stdin = sys.stdin
            text = _unread(sys.stdin)
            if text is not None or self._has_stdin:
                self._has_stdin = text is not None
                yield "stdin", (text or "",)
        serial = self._session.tasks.serial()
        if serial != self._loop:
            self._loop = serial
            yield "loop", (serial,)
        if self._seed is not None:
            seed, self._seed = self._seed, None
            yield "seed", seed

    def _changes_of_files(self, fields: Any) -> Any:
        directory = _getcwd()
        self._name(fields)
        if sys.path != self._path:
            added = [
                entry
                for entry in sys.path
                if type(entry) is str and entry not in self._path and self._is_scratch(entry)
            ]
            self._path = list(sys.path)
            self._name(added)
            yield "path", added
        tops = [*self._named, directory] if self._is_scratch(directory) else [*self._named]
        if tops:
            yield "files", self._files.changes(tops, self._may_cross, self._above(tops))
        if directory != self._directory:
            self._directory = directory
            yield "directory", directory

    def _name(self, fields: Any) -> None:
        """Note the paths of files in what the test sends."""
        waiting = [fields]
        for _ in range(_MOST_NODES):
            if not waiting or len(self._named) >= _MOST_NAMED:
                return
            value = waiting.pop()
            if isinstance(value, (str, os.PathLike)) or type(value) is bytes:
                self._name_text(value)
            elif type(value) in (list, tuple, set, frozenset):
                waiting += value
            elif type(value) is dict:
                waiting += value.values()
                waiting += value

    def _name_text(self, value: Any) -> None:
        if type(value) not in (str, bytes) and not type(value).__module__.startswith(("pathlib", "py.", "_pytest")):
            return
        text = os.fsdecode(value)
        candidates = [text] if len(text) < 1000 and "\n" not in text and "\0" not in text else []
        if "=" in text and candidates:
            candidates.append(text.partition("=")[2])
        if any(root in text for root in self._roots):
            candidates += _PATH_IN_TEXT.findall(text[:100_000])
        for candidate in candidates:
            path = _abspath(candidate) if candidate else ""
            if path in self._named or not any(path.startswith(f"{root}/") for root in self._roots):
                continue
            if self._is_scratch(path) or _exists(path):
                self._named.add(path)

    def _above(self, paths: list[str]) -> set[str]:
        """The directories between the scratch directories and these paths."""
        above = set()
        for path in paths:
            directory = path.rpartition("/")[0]
            while self._is_scratch(directory) and directory not in above:
                above.add(directory)
                directory = directory.rpartition("/")[0]
        return above

    def _is_scratch(self, path: str) -> bool:
        return any(path.startswith(f"{root}/") for root in self._scratch)

    def _may_cross(self, path: str, is_directory: bool) -> bool:
        """Whether a file that the test has named, or a directory above it, may be shown to the code."""
        name = path.rpartition("/")[2]
        if self._is_scratch(path):
            return True
        if is_directory:
            return name != "__pycache__"
        if name.endswith(".py"):
            return path in self._named and not name.startswith(("test", "conftest")) and not name.endswith("_test.py")
        return not name.endswith((".pyc", ".pyo"))

    def _changed_levels(self) -> dict[str, int]:
        levels = _log_levels()
        changed = {name: level for name, level in levels.items() if self._levels.get(name, _UNSET) != level}
        changed |= {name: _UNSET for name in self._levels if name not in levels}
        self._levels = levels
        return changed

    def note_seed(self, arguments: tuple[Any, ...]) -> None:
        if all(type(argument) in (int, float, str, bytes, type(None)) for argument in arguments):
            self._seed = arguments

    def happen(self, effects: Any) -> None:
        """Do here what the code did. Raises WireError for what no honest worker sends, and a warning that a filter of
        the test turns into an error."""
        if type(effects) is not dict or any(name not in _EFFECTS for name in effects):
            raise self._session.end(WireError("effects that are none"))
        for name in _EFFECTS:
            if name in effects:
                try:
                    getattr(self, f"_happen_{name}")(effects[name])
                except (ValueError, TypeError) as error:
                    raise self._session.end(WireError(str(error))) from None

    def _happen_files(self, changes: Any) -> None:
        for path, content in check_changes(changes):
            _, names = split_path(path, self._roots)
            if not self._may_happen(path, names, content):
                continue
            try:
                self._files.apply((path, content), self._roots)
            except OSError:
                continue
            self._note_of_code(path)

    def _may_happen(self, path: str, names: list[str], content: Any) -> bool:
        if any(name in _BARRED_NAMES for name in names) or path.endswith(_BARRED_SUFFIXES):
            return False
        if path in self._of_code:
            return True
        if not self._is_scratch(path):
            if content is None or type(content) is int:
                return content is not None and not _exists(path)
            return not _exists(path) and not path.endswith(_NOT_IN_WORKSPACE)
        return not _exists(path) or self._was_named(path)

    def _was_named(self, path: str) -> bool:
        directory = _getcwd()
        if self._is_scratch(directory) and path.startswith(f"{directory}/"):
            return True
        while len(path) > 1:
            if path in self._named:
                return True
            path = path.rpartition("/")[0]
        return False

    def _note_of_code(self, path: str) -> None:
        self._of_code.add(path)
        self._named.add(path)
        if not self._guarded:
            self._guarded = True
            sys.addaudithook(self._refuse_code)

    def _refuse_code(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python code from a file of the code under test is not run in this process."""
        if event != "exec" or not isinstance(arguments[0], types.CodeType):
            return
        file = arguments[0].co_filename
        if not file.startswith("<"):
            path = os.path.realpath(file)
            while len(path) > 1:
                if path in self._of_code and not os.path.isdir(path):
                    raise RuntimeError("split mode: a file of the code under test is not run in the test process")
                path = path.rpartition("/")[0]

    def _happen_environment(self, changes: Any) -> None:
        if type(changes) is not dict or len(changes) > _MOST_NOTICES:
            raise ValueError("an environment that is none")
        for name, value in changes.items():
            if type(name) is not str or not (value is None or (type(value) is str and "\0" not in value)):
                raise ValueError("an environment that is none")
            if not _VARIABLE.fullmatch(name) or _BARRED_VARIABLES.match(name):
                continue
            if value is None:
                _ENVIRONMENT.pop(name, None)
            else:
                _ENVIRONMENT[name] = value
        self._environment = _variables()

    def _happen_levels(self, levels: Any) -> None:
        if type(levels) is not dict or len(levels) > _MOST_NOTICES:
            raise ValueError("log levels that are none")
        for name, level in levels.items():
            if type(name) is not str or type(level) is not int:
                raise ValueError("log levels that are none")
            if name == "root" or name.partition(".")[0] in self._served:
                logging.getLogger(None if name == "root" else name).setLevel(level)
        self._levels = _log_levels()

    def _happen_warnings(self, issued: Any) -> None:
        if type(issued) is not list or len(issued) > _MOST_NOTICES:
            raise ValueError("warnings that are none")
        file, line, module = _caller()
        for warning in issued:
            if not isinstance(warning, Warning):
                raise ValueError("a warning that is none")
            warnings.warn_explicit(warning, type(warning), file, line, module)

    def _happen_records(self, records: Any) -> None:
        if type(records) is not list or len(records) > _MOST_NOTICES:
            raise ValueError("log records that are none")
        file, line, _ = _caller()
        for record in records:
            if type(record) is not tuple or tuple(map(type, record[:3])) != (str, int, str) or len(record) != 4:
                raise ValueError("log records that are none")
            name, level, text, error = record
            if not (error is None or isinstance(error, Exception)):
                raise ValueError("log records that are none")
            logger = logging.getLogger(None if name == "root" else name)
            if logger.isEnabledFor(level):
                raised = None if error is None else (type(error), error, None)
                logger.handle(logging.LogRecord(name, level, file, line, text, (), raised))


_UNSET = 0


def _variables() -> dict[str, str]:
    return {name: value for name, value in _ENVIRONMENT.items() if not name.startswith(_HIDDEN_VARIABLES)}


def _log_levels() -> dict[str, int]:
    loggers = logging.root.manager.loggerDict
    levels = {name: logger.level for name, logger in loggers.items() if isinstance(logger, logging.Logger)}
    levels = {name: level for name, level in levels.items() if level != _UNSET}
    if logging.root.level != logging.WARNING:
        levels["root"] = logging.root.level
    if logging.root.manager.disable:
        levels["disable"] = logging.root.manager.disable
    return levels


def _unread(stream: Any) -> str | None:
    """The text that a stream of the test still holds."""
    try:
        if isinstance(stream, io.StringIO):
            return stream.getvalue()[stream.tell() :]
        if isinstance(stream, io.TextIOWrapper) and stream.buffer.seekable():
            at = stream.buffer.tell()
            data = stream.buffer.read(_MOST_INPUT)
            stream.buffer.seek(at)
            return str(data, stream.encoding or "utf-8", "replace")
    except (ValueError, OSError, AttributeError):
        return None
    return None


def _caller() -> tuple[str, int, str]:
    """The line of the test that the request came from."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    if frame is None:
        return "test", 1, "test"
    return frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__", "test"))


def _note_seeds(surroundings: Surroundings) -> None:
    """Where a test seeds the random numbers, the code gets the same seed."""
    seed = random.seed

    def noted(*arguments: Any, **keywords: Any) -> None:
        seed(*arguments, **keywords)
        surroundings.note_seed((*arguments, *keywords.values()))

    random.seed = noted
