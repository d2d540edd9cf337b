"""Load a task directory, or say in one line what is wrong with it and where."""

import os
import stat
import tomllib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

from gametape.core.errors import BadInput
from gametape.core.task import Task
from gametape.core.validation import Problem
from gametape.record.errors import printable_path, read_error
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under, read_tree
from gametape.tasks.consistency import find_inconsistencies
from gametape.tasks.dependency_env.build import StatusCallback, rebuild_dependency_env
from gametape.tasks.layout import (
    CACHE_DIRECTORIES,
    DELETED_FILE,
    SOLUTION_DIRECTORY,
    SUITE_DIRECTORY,
    VCS_DIRECTORIES,
    WORKSPACE_DIRECTORY,
)
from gametape.tasks.project import ProjectRefused
from gametape.tasks.task_toml import TaskToml, parse_task_toml, to_task

MAX_PROBLEMS_SHOWN = 3


def load_task(path: Path, home: Path | None = None, on_status: StatusCallback = lambda _: None) -> LoadedTask:
    """Read a task directory in Harbor's layout with everything in it. Raises `BadInput` if it cannot be used.

    If the interpreter it names is not on this machine, an environment of its pinned dependencies is built under
    `home`; without a `home`, that is bad input.
    """
    subject, named = _read(path)
    return (
        subject
        if named is None
        else replace(subject, interpreter=_interpreter(path, subject.task, named, home, on_status))
    )


def read_task(path: Path) -> LoadedTask:
    """The same to look at only: no interpreter is looked for, and the subject has none."""
    return _read(path)[0]


def _read(path: Path) -> tuple[LoadedTask, str | None]:
    """The subject, and the interpreter it names."""
    try:
        _refuse_odd_entries(path)
        read = _task_file(path)
        task = _task(path, read)
        start = _tree(path / WORKSPACE_DIRECTORY)
        suite = _tree(path / SUITE_DIRECTORY)
        subject = LoadedTask(task, start, suite, _reference(path, start, task))
    except OSError as error:
        raise read_error(Path(error.filename or path), error) from error
    for where, problem in find_inconsistencies(subject):
        _refuse(path / where, problem)
    return subject, read.gametape_table.interpreter


def _interpreter(path: Path, task: Task, named: str, home: Path | None, tell: StatusCallback) -> Path:
    found = (path / named).absolute()
    if found.is_file():
        return found
    gone = f"{printable_path(path / 'task.toml')}: its interpreter {printable_path(Path(named))} is not there"
    if home is None or not task.dependencies:
        raise BadInput(f"{gone}; {'name one' if home else 'say where a new one can be built'}, or leave it out")
    try:
        return rebuild_dependency_env(task.dependencies, task.origin, home, tell).interpreter
    except ProjectRefused as error:
        raise BadInput(f"{gone}, and cannot be built again: {error}") from error


def _refuse(path: Path, *problems: Problem) -> NoReturn:
    """Say what is wrong with a file; a key with a typing error is two problems, so a few are told at once."""
    told = "; ".join(map(str, problems[:MAX_PROBLEMS_SHOWN]))
    more = len(problems) - MAX_PROBLEMS_SHOWN
    raise BadInput(f"{printable_path(path)}: {told}" + (f" (and {more} more)" if more > 0 else ""))


def _refuse_odd_entries(path: Path) -> None:
    """Only directories and regular files with names that are text: anything else could lead outside."""
    if not path.is_dir():
        _refuse(path, Problem("", "a task directory" + (", not a file" if path.exists() else ", but there is nothing")))
    if not (path / "task.toml").exists():
        _refuse(path, Problem("", "a task directory, but there is no task.toml in it"))
    for directory, inner, files in os.walk(path, onerror=_raise):
        for entry in (Path(directory, name) for name in [*inner, *files]):
            kind = entry.lstat().st_mode
            if stat.S_ISLNK(kind):
                _refuse(entry, Problem("", "a regular file, not a link"))
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                _refuse(entry, Problem("", "a regular file or a directory"))
            if any("\udc80" <= char <= "\udcff" for char in entry.name):
                _refuse(entry, Problem("", "a name in UTF-8"))
            if entry.name in VCS_DIRECTORIES:
                _refuse(entry, Problem("", "no history in a task: the answer can be read from it"))


def _raise(error: OSError) -> NoReturn:
    raise error


def _task_file(path: Path) -> TaskToml:
    file = path / "task.toml"
    try:
        document = tomllib.loads(_text(file))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{printable_path(file)}: not TOML: {error}") from error
    read = parse_task_toml(document)
    if isinstance(read, list):
        _refuse(file, *read)
    return read


def _task(path: Path, read: TaskToml) -> Task:
    stages = {name: _instruction(path / "steps" / name) for name in read.stage_names}
    task = to_task(read, _instruction(path), stages)
    if isinstance(task, list):
        _refuse(path / "task.toml", *task)
    return task


def _instruction(directory: Path) -> str:
    file = directory / "instruction.md"
    if not file.is_file():
        _refuse(file, Problem("", "an instruction, but there is no such file"))
    text = _text(file)
    if not text.strip():
        _refuse(file, Problem("", "an instruction, but the file is empty"))
    return text


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{printable_path(file)}: expected UTF-8, but byte {error.start} is not") from error


def _tree(directory: Path) -> SourceTree:
    if not directory.is_dir():
        _refuse(directory, Problem("", "a directory, but there is none"))
    whole = read_tree(directory)
    return whole.without({path for path in whole if _is_left_behind(path)})


def _is_left_behind(path: str) -> bool:
    return path.endswith(".pyc") or any(part in CACHE_DIRECTORIES for part in PurePosixPath(path).parts)


def _reference(path: Path, start: SourceTree, task: Task) -> SourceTree | None:
    """The starting tree with the solution applied; None if the task brings no solution."""
    written = _tree(path / SOLUTION_DIRECTORY) if (path / SOLUTION_DIRECTORY).exists() else SourceTree()
    deleted = _text(path / DELETED_FILE).split("\n") if (path / DELETED_FILE).exists() else []
    removed = {line for line in deleted if line}
    if not written.files and not removed:
        return None
    for name in sorted(removed):
        if name not in start or not is_under(name, task.source_paths):
            _refuse(path / DELETED_FILE, Problem("", f"files of the workspace below source_paths, but {name} is not"))
    for name in written:
        if not is_under(name, task.source_paths):
            _refuse(
                path / SOLUTION_DIRECTORY / name,
                Problem("", "a file below source_paths: no other is taken from an attempt"),
            )
    return written.overlaid_on(start.without(removed))
