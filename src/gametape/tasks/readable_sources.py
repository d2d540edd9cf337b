"""Python files of a task that no interpreter can read: their place, the line, and what is wrong there."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse
from gametape.tasks.layout import SOLUTION_DIRECTORY, SUITE_DIRECTORY, WORKSPACE_DIRECTORY

_COMPILE = "import sys; compile(sys.stdin.buffer.read(), 'source', 'exec', dont_inherit=True)"
_SECONDS = 60.0


class UnreadableSource(NamedTuple):
    """`path` is below the task directory."""

    path: str
    line: int | None
    problem: str

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line else self.path
        return f"{where}: {self.problem}"


def find_unreadable_start(loaded_task: LoadedTask) -> list[UnreadableSource]:
    """Sources that the agent starts from and the reference changes, and test files. Other files may be anything: a
    package that parses Python has some that are wrong on purpose."""
    task, start, reference = loaded_task.task, loaded_task.start, loaded_task.reference
    kept = {path for path in start if reference and start.files[path] == reference.files.get(path)}
    sources = start.under(task.source_paths).without(kept)
    tests = loaded_task.suite.only({test.partition("::")[0] for test in task.tests.every})
    return [
        *_unreadable(sources, WORKSPACE_DIRECTORY, loaded_task.interpreter),
        *_unreadable(tests, SUITE_DIRECTORY, loaded_task.interpreter),
    ]


def find_unreadable_reference(loaded_task: LoadedTask) -> list[UnreadableSource]:
    """Files that the reference adds or changes."""
    start, reference = loaded_task.start, loaded_task.reference or SourceTree()
    changed = {path for path in reference if start.files.get(path) != reference.files[path]}
    return [*_unreadable(reference.only(changed), SOLUTION_DIRECTORY, loaded_task.interpreter)]


def _unreadable(tree: SourceTree, directory: str, interpreter: Path | None) -> Iterator[UnreadableSource]:
    for path, content in sorted(tree.files.items()):
        if path.endswith(".py") and (problem := _problem(content)) and not _compiles(content, interpreter):
            line, text = problem
            yield UnreadableSource(f"{directory}/{path}", line, text)


def _problem(content: bytes) -> tuple[int | None, str] | None:
    """The line and what is wrong in it. A byte order mark, a declared encoding and any line ends are fine."""
    try:
        parse(content)
    except SyntaxError as error:
        if error.lineno is None:
            return None, f"not Python source: {error.msg}"
        line = (error.text or "").strip()
        quoted = f" ({line[:80]})" if line and line.isprintable() else ""
        return error.lineno, f"{error.msg}{quoted}"
    return None


def _compiles(content: bytes, interpreter: Path | None) -> bool:
    """Whether the task's own interpreter, which may be newer, can read it. Nothing is run."""
    if interpreter is None:
        return False
    try:
        done = subprocess.run(
            [interpreter, "-I", "-S", "-c", _COMPILE], input=content, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
