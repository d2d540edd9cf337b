"""Parses a success command into conditions: pytest runs, and shell commands of which only the exit code counts.

Conditions are joined with `&&`. Of pytest's options, those that select tests and those that change its output are
supported. Any other option is refused: the protected run would no longer be the same command.
"""

import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from gametape.core.errors import BadInput
from gametape.desk.goals.pinned_files import pinned_files, shadowing_files
from gametape.record.source_tree import SourceTree
from gametape.sandbox.policy import WORKSPACE


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_OPERATORS = re.compile(r"[;&|<>()]+")
_WRAPPERS = (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("env",), ("time",))
"""Prefixes of a command that are dropped: the interpreter is chosen in another way."""
_ALLOWED_VARIABLES = _words(
    """PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED PYTHONWARNINGS PYTHONFAULTHANDLER CI NO_COLOR FORCE_COLOR
    PY_COLORS COLUMNS LINES TERM"""
)
"""Variables that neither select tests nor change results."""
_SELECTION_OPTIONS = ("-k", "-m", "--deselect", "--ignore", "--ignore-glob")
_WITH_VALUE = _words(
    """--tb --maxfail --durations --durations-min --color --capture --show-capture --verbosity --import-mode --timeout
    --junitxml --junit-xml --log-level --log-cli-level --cov --cov-report --cov-config --cov-fail-under -r -W -n
    --numprocesses --dist"""
)
_FLAGS = _words(
    """-q --quiet -v --verbose -x --exitfirst -s -l --showlocals --no-showlocals --no-header --no-summary --full-trace
    --disable-warnings --disable-pytest-warnings --strict-markers --strict-config --strict --no-cov --cov-branch
    --cov-append --cache-clear --ff --failed-first --nf --new-first --continue-on-collection-errors"""
)
_GROUPED = re.compile(r"-[qvxsl]{2,}")


@dataclass(frozen=True)
class PytestRun:
    """One pytest run: its directory, its targets, and the options that select among the tests."""

    targets: tuple[str, ...]
    """Paths relative to the workspace, or test ids with `::`. Empty: wherever pytest looks by itself."""
    selection_options: tuple[str, ...] = ()
    directory: str = "."
    import_roots: tuple[str, ...] = ()
    """Directories that the command puts on PYTHONPATH."""
    arguments: tuple[str, ...] = field(default=(), compare=False)
    """The words after `pytest`, as the user gave them."""
    variables: tuple[str, ...] = field(default=(), compare=False)
    """The variables that the user sets for it, as `NAME=VALUE`."""


@dataclass(frozen=True)
class ShellCommand:
    """Any other command."""

    text: str
    words: tuple[str, ...]
    directory: str = "."

    def pinned_files(self, tree: SourceTree) -> set[str]:
        """Files of the workspace that decide what the command does."""
        return pinned_files(self.words, self.directory, tree)

    def forbidden_files(self, tree: SourceTree) -> set[str]:
        """Files that do not exist, and that would decide what the command does if they did."""
        return shadowing_files(self.words, self.directory, tree)


Condition = PytestRun | ShellCommand


@dataclass(frozen=True)
class SuccessCriterion:
    """The conditions of a success command. All of them must hold."""

    conditions: tuple[Condition, ...]

    @property
    def pytest_runs(self) -> list[PytestRun]:
        return [condition for condition in self.conditions if isinstance(condition, PytestRun)]

    @property
    def shell_commands(self) -> list[ShellCommand]:
        return [condition for condition in self.conditions if isinstance(condition, ShellCommand)]


def read_command(text: str) -> SuccessCriterion:
    """Parse a success command. Raises `BadInput` for an empty one, and for one that hides a pytest run."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
    except ValueError as error:
        raise BadInput(f"the success command cannot be read: {error}") from error
    if not words:
        raise BadInput("the success command is empty; give one such as --success 'pytest -q'")
    if any(_OPERATORS.fullmatch(word) and word != "&&" for word in words) or _is_scripted(text):
        return SuccessCriterion((_shell_command(text, words, "."),))
    return SuccessCriterion(tuple(_conditions(words)))


def _is_scripted(text: str) -> bool:
    return any(mark in text for mark in ("$(", "`", "\n"))


def _conditions(words: list[str]) -> list[Condition]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            parts.append([])
        else:
            parts[-1].append(word)
    if not all(parts):
        raise BadInput("the success command has nothing on one side of &&")
    directory = "."
    conditions: list[Condition] = []
    for part in parts:
        if part[0] == "cd" and len(part) == 2:
            directory = _inside_workspace(posixpath.join(directory, part[1]))
            continue
        rest, variables = _pytest_arguments(part)
        if rest is None:
            conditions.append(_shell_command(shlex.join(part), part, directory))
        else:
            conditions.append(_pytest(rest, directory, variables))
    if not conditions:
        raise BadInput("the success command does nothing but change directories")
    return conditions


def _pytest_arguments(words: list[str]) -> tuple[list[str] | None, dict[str, str]]:
    """The arguments of a pytest run (None for any other command), and the variables that are set for it."""
    variables: dict[str, str] = {}
    while words:
        if _ASSIGNMENT.fullmatch(words[0]):
            name, _, value = words[0].partition("=")
            variables[name] = value
            words = words[1:]
            continue
        wrapper = next((prefix for prefix in _WRAPPERS if tuple(words[: len(prefix)]) == prefix), None)
        if wrapper is None:
            break
        words = words[len(wrapper) :]
    if words[:1] == ["coverage"] and words[1:4] == ["run", "-m", "pytest"]:
        return words[4:], variables
    if words and posixpath.basename(words[0]) in ("pytest", "py.test"):
        return words[1:], variables
    if words and _PYTHON.fullmatch(words[0]) and words[1:3] == ["-m", "pytest"]:
        return words[3:], variables
    return None, variables


def _shell_command(text: str, words: list[str], directory: str) -> ShellCommand:
    if any(posixpath.basename(word) in ("pytest", "py.test") for word in words) or re.search(r"\bpytest\b", text):
        raise BadInput(
            "pytest is wrapped in a way that would leave its exit code to decide; "
            "give it as a command of its own, and join other conditions with &&"
        )
    return ShellCommand(text, tuple(words), directory)


def _pytest(words: list[str], directory: str, variables: dict[str, str]) -> PytestRun:
    paths = [path for path in variables.pop("PYTHONPATH", "").split(":") if path]
    if others := set(variables) - _ALLOWED_VARIABLES:
        raise BadInput(f"{min(others)} cannot be set for a protected run of pytest; set it in the tests' configuration")
    targets, selection, unknown = read_options(words)
    if unknown:
        raise BadInput(f"the success command has an option of pytest that cannot be protected: {unknown[0]}")
    return PytestRun(
        targets=tuple(_target(directory, target) for target in targets),
        selection_options=tuple(selection),
        directory=directory,
        import_roots=tuple(_inside_workspace(posixpath.join(directory, path)) for path in paths),
        arguments=tuple(words),
        variables=tuple(f"{name}={value}" for name, value in variables.items()),
    )


def plain_command(run: PytestRun, import_roots: Sequence[str]) -> ShellCommand:
    """A pytest run as a command that any shell understands, with the workspace as its directory."""
    roots = ":".join(posixpath.normpath(posixpath.join(WORKSPACE, root)) for root in import_roots)
    words = ["python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *run.selection_options]
    words += run.targets or ([run.directory] if run.directory != "." else [])
    return ShellCommand(f"PYTHONPATH={shlex.quote(roots)} {shlex.join(words)}", tuple(words))


def own_command(run: PytestRun, import_roots: Sequence[str]) -> ShellCommand:
    """A pytest run in the user's own words, in the user's directory, with nothing left out."""
    roots = ":".join(posixpath.normpath(posixpath.join(WORKSPACE, root)) for root in import_roots)
    words = ["env", f"PYTHONPATH={roots}", *run.variables, "python", "-B", "-m", "pytest", *run.arguments]
    return ShellCommand(shlex.join(words), tuple(words), run.directory)


def read_options(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Parse the arguments of pytest into targets, options that select tests, and options that are not supported."""
    targets: list[str] = []
    selection: list[str] = []
    unknown: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        name, has_value, value = word.partition("=")
        short = next((flag for flag in ("-k", "-m") if word.startswith(flag) and word != flag), None)
        if word == "--":
            targets += remaining
            break
        if name in _SELECTION_OPTIONS:
            selection += [name, value if has_value else remaining.pop(0)] if has_value or remaining else []
        elif short and not word.startswith("--"):
            selection += [short, word[2:]]
        elif word in _FLAGS or _GROUPED.fullmatch(word):
            continue
        elif name in _WITH_VALUE or re.fullmatch(r"-[rnW].+", word):
            if name in _WITH_VALUE and not has_value and remaining:
                remaining.pop(0)
        elif word.startswith("-p"):
            plugin = word[2:] or (remaining.pop(0) if remaining else "")
            unknown += [] if plugin.startswith("no:") else [f"-p {plugin}"]
        elif word.startswith("-"):
            unknown.append(word)
        else:
            targets.append(word)
    return targets, selection, unknown


def _target(directory: str, target: str) -> str:
    file, mark, rest = target.partition("::")
    return _inside_workspace(posixpath.join(directory, file)) + mark + rest


def _inside_workspace(path: str) -> str:
    normalized = posixpath.normpath(path)
    if normalized.startswith(("/", "..")):
        raise BadInput(f"the success command leads out of the workspace: {path}")
    return normalized
