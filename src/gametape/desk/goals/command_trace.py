"""What a traced run of the success command did with the files of the workspace, as relative paths."""

import functools
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, parent_directories
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.result import AccessKind, FileTrace, TracedProcess

SHELL = re.compile(r"(ba|da|z|k|a|mk|)sh|busybox")
_INSTRUCTED = re.compile(r"(g|bsd|re|n)?make|ninja|cmake|just|task|env|xargs|find|timeout|time|nice")
_INTERPRETER = re.compile(
    r"(python|pypy)[\d.]*|node(js)?|deno|bun|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua(jit)?[\d.]*|Rscript|julia|[mgn]?awk"
)
_TEST_RUNNER = re.compile(
    r"unittest|doctest|(py|c|nose|auto)\.?test(s2?)?|nose2?|jest|mocha|vitest|ava|tap|prove|bats|rspec|minitest|phpunit|busted"
)
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_PHP = re.compile(r"php[\d.]*")
_OPTIONS = (
    (_PYTHON, ("-c",), ("-W", "-X", "--check-hash-based-pycs")),
    (SHELL, ("-c",), ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")),
    (_PHP, ("-r",), ("-c", "-d", "-z")),
    (_INTERPRETER, ("-e", "-E", "-p", "--eval", "--print"), ("-I", "-M", "-r", "--require", "--import", "--loader")),
)
"""For each kind of interpreter the options after which comes code instead of a file, and those that take a value."""


@dataclass(frozen=True)
class CommandTrace:
    """A trace over a tree. Paths are relative to the workspace; only files of the tree are named."""

    trace: FileTrace
    tree: SourceTree

    @functools.cached_property
    def read_by(self) -> dict[str, set[int]]:
        """The files that were read or executed, and the processes that did it, or (for a script) became it."""
        found: dict[str, set[int]] = {}
        for path, kind, number in self._accesses():
            if kind in ("read", "run") and path in self.tree:
                found.setdefault(path, set()).add(number)
        return found

    @functools.cached_property
    def looked_at_by(self) -> dict[str, set[int]]:
        """Every path that was asked for in any way but to be written, whether or not it exists."""
        found: dict[str, set[int]] = {}
        for path, kind, number in self._accesses():
            if kind not in ("write", "inherit"):
                found.setdefault(path, set()).add(number)
        return found

    @functools.cached_property
    def inherited_by(self) -> dict[str, set[int]]:
        """The files that were open when a program began, and the processes that had them."""
        found: dict[str, set[int]] = {}
        for path, kind, number in self._accesses():
            if kind == "inherit" and path in self.tree:
                found.setdefault(path, set()).add(number)
        return found

    @functools.cached_property
    def listed(self) -> set[str]:
        """The directories whose names were read; the workspace itself is the empty path."""
        return {_relative(access.path) for access in self.trace.accesses if access.kind == "list"}

    @functools.cached_property
    def written(self) -> set[str]:
        """The files that were opened to be written, removed or given another name, with a directory above them or
        alone."""
        written = {path for path, kind, _ in self._accesses() if kind == "write"}
        return {path for path in self.tree if path in written or not written.isdisjoint(parent_directories(path))}

    @functools.cached_property
    def written_by(self) -> dict[str, set[int]]:
        """Those that were opened to be written, removed or given another name alone, and the processes that did it."""
        found: dict[str, set[int]] = {}
        for path, kind, number in self._accesses():
            if kind == "write" and path in self.tree:
                found.setdefault(path, set()).add(number)
        return found

    @functools.cached_property
    def made_by(self) -> dict[str, set[int]]:
        """The paths without a file in the tree that were opened to be written, and the processes that did it."""
        found: dict[str, set[int]] = {}
        for path, kind, number in self._accesses():
            if kind == "write" and path not in self.tree:
                found.setdefault(path, set()).add(number)
        return found

    @functools.cached_property
    def scripts(self) -> dict[int, str]:
        """The file of the workspace that each process runs, where it runs one."""
        return {
            number: script
            for number, process in enumerate(self.trace.processes)
            if (script := self._script(number, process)) is not None
        }

    def runs_instructions(self, number: int) -> bool:
        """Whether a process is a shell, `make` or the like: what it reads tells it what to run."""
        program = _program(self.trace.processes[number])
        return bool(SHELL.fullmatch(program) or _INSTRUCTED.fullmatch(program))

    def is_shell(self, number: int) -> bool:
        return bool(SHELL.fullmatch(_program(self.trace.processes[number])))

    def runs_tests(self, number: int) -> bool:
        """Whether a process is a test runner."""
        return any(_TEST_RUNNER.fullmatch(posixpath.basename(word)) for word in self.trace.processes[number].words[:3])

    def module_names(self) -> set[str]:
        """The modules that a Python process was asked to run with `-m`."""
        return {name for process in self.trace.processes if (name := _module(process.words)) is not None}

    def runs_below(self, number: int, scripts: Collection[str]) -> bool:
        """Whether a process runs one of these files, or one above it does."""
        return any(self.scripts.get(each) in scripts for each in (number, *self.ancestors(number)))

    def ancestors(self, number: int) -> Iterator[int]:
        """The processes above a process, the nearest first."""
        parent = self.trace.processes[number].parent
        while parent is not None:
            yield parent
            parent = self.trace.processes[parent].parent

    def _accesses(self) -> Iterator[tuple[str, AccessKind, int]]:
        for access in self.trace.accesses:
            if access.path.startswith(f"{WORKSPACE}/"):
                yield _relative(access.path), access.kind, access.process

    def _script(self, number: int, process: TracedProcess) -> str | None:
        if not process.words:
            return None
        own = self._relative(process, process.words[0])
        if own in self.tree:
            return own
        program = _program(process)
        if not (_INTERPRETER.fullmatch(program) or SHELL.fullmatch(program)):
            return None
        if module := _module(process.words):
            stem = module.replace(".", "/")
            names = (f"{stem}/__main__.py", f"{stem}.py")
            read = [path for path, numbers in self.read_by.items() if number in numbers]
            return next((path for name in names for path in read if f"/{path}".endswith(f"/{name}")), None)
        word = _first_argument(process.words)
        path = self._relative(process, word) if word else None
        return path if path in self.tree else None

    @staticmethod
    def _relative(process: TracedProcess, word: str) -> str | None:
        path = posixpath.normpath(posixpath.join(process.directory or WORKSPACE, word))
        return path.removeprefix(f"{WORKSPACE}/") if path.startswith(f"{WORKSPACE}/") else None


def _relative(path: str) -> str:
    return path.removeprefix(WORKSPACE).removeprefix("/")


def _program(process: TracedProcess) -> str:
    return posixpath.basename(process.words[0]) if process.words else ""


def _module(words: tuple[str, ...]) -> str | None:
    """What a Python process runs with `-m`."""
    if not words or not _PYTHON.fullmatch(posixpath.basename(words[0])):
        return None
    for at, word in enumerate(words[1:], start=1):
        if word == "-m":
            return words[at + 1] if at + 1 < len(words) else None
        if not word.startswith("-") or word == "-c":
            return None
        if word.startswith("-m"):
            return word[2:]
    return None


def _first_argument(words: tuple[str, ...]) -> str | None:
    """The script among the words of an interpreter; None where it runs code that was given as a word."""
    program = posixpath.basename(words[0])
    _, code_options, value_options = next(row for row in _OPTIONS if row[0].fullmatch(program))
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in code_options:
            return None
        elif word in value_options:
            skip = True
        elif not word.startswith("-"):
            return word
    return None
