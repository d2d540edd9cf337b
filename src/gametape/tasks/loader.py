"""Load a task directory, or raise `BadInput` with one line that says what is wrong and where."""

import stat
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from gametape.core.errors import BadInput
from gametape.core.task import Task
from gametape.core.validation import Problem
from gametape.record.directory_walk import walk
from gametape.record.errors import printable_path, read_error
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under, read_tree
from gametape.tasks.consistency import find_inconsistencies
from gametape.tasks.dependency_env.build import StatusCallback, rebuild_dependency_env
from gametape.tasks.layout import (
    DELETED_FILE,
    SOLUTION_DIRECTORY,
    SUITE_DIRECTORY,
    VCS_DIRECTORIES,
    WORKSPACE_DIRECTORY,
    is_cache_file,
)
from gametape.tasks.project import ProjectRefused
from gametape.tasks.task_toml import TaskToml, parse_task_toml, to_task

MAX_PROBLEMS_SHOWN = 3


def load_task(path: Path, home: Path | None = None, on_status: StatusCallback = lambda _: None) -> LoadedTask:
    """Read a task directory in Harbor's layout, with all its trees. Raises `BadInput` if it cannot be used.

    If the interpreter it names is not on this machine, an environment with its pinned dependencies is built under
    `home`; without a `home`, a missing interpreter is bad input.
    """
    loaded_task, named = _read(path)
    return (
        loaded_task
        if named is None
        else replace(loaded_task, interpreter=_interpreter(path, loaded_task.task, named, home, on_status))
    )


def read_task(path: Path) -> LoadedTask:
    """Read a task directory to look at it: no interpreter is looked up or built, and the result has none."""
    return _read(path)[0]


def _read(path: Path) -> tuple[LoadedTask, str | None]:
    """The task, and the interpreter that task.toml names."""
    try:
        _refuse_odd_entries(path)
        task_toml = _task_file(path)
        task = _task(path, task_toml)
        start = _tree(path / WORKSPACE_DIRECTORY)
        suite = _tree(path / SUITE_DIRECTORY)
        loaded_task = LoadedTask(task, start, suite, _reference(path, start, task))
    except OSError as error:
        raise read_error(Path(error.filename or path), error) from error
    for where, problem in find_inconsistencies(loaded_task):
        _refuse(path / where, problem)
    return loaded_task, task_toml.gametape_table.interpreter


def _interpreter(path: Path, task: Task, named: str, home: Path | None, on_status: StatusCallback) -> Path:
    interpreter = (path / named).absolute()
    if interpreter.is_file():
        return interpreter
    missing = f"{printable_path(path / 'task.toml')}: its interpreter {printable_path(Path(named))} is not there"
    if home is None or not task.dependencies:
        raise BadInput(f"{missing}; {'name one' if home else 'say where a new one can be built'}, or leave it out")
    try:
        return rebuild_dependency_env(task.dependencies, task.origin, home, on_status).interpreter
    except ProjectRefused as error:
        raise BadInput(f"{missing}, and cannot be built again: {error}") from error


def _refuse(path: Path, *problems: Problem) -> NoReturn:
    """Raise for a file. The first few problems are listed, because a misspelt key is two of them."""
    listed = "; ".join(map(str, problems[:MAX_PROBLEMS_SHOWN]))
    rest = len(problems) - MAX_PROBLEMS_SHOWN
    raise BadInput(f"{printable_path(path)}: {listed}" + (f" (and {rest} more)" if rest > 0 else ""))


def _refuse_odd_entries(path: Path) -> None:
    """Accept only directories and regular files with UTF-8 names: anything else could lead outside."""
    if not path.is_dir():
        _refuse(path, Problem("", "a task directory" + (", not a file" if path.exists() else ", but there is nothing")))
    if not (path / "task.toml").exists():
        tasks = sorted(file.parent for file in path.glob("*/task.toml"))
        more = f"; one of the tasks in it is {printable_path(tasks[0])}" if tasks else ""
        _refuse(path, Problem("", f"a task directory, but there is no task.toml in it{more}"))
    for directory, inner, files in walk(path, _raise):
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
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{printable_path(file)}: not TOML: {error}") from error
    parsed = parse_task_toml(document)
    if isinstance(parsed, list):
        _refuse(file, *parsed)
    return parsed


def _task(path: Path, task_toml: TaskToml) -> Task:
    stages = {name: _instruction(path / "steps" / name) for name in task_toml.stage_names}
    task = to_task(task_toml, _instruction(path), stages)
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
    return whole.without({path for path in whole if is_cache_file(path)})


def _reference(path: Path, start: SourceTree, task: Task) -> SourceTree | None:
    """The starting tree with the solution applied; None if the task has no solution."""
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
