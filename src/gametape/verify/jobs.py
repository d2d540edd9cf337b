"""Build the job of a sandbox: its files, its test processes, and the options of pytest."""

import functools
import random
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.verify.interpreter import installed_pytest_plugins
from gametape.verify.runner import TestProcess, ZygoteJob
from gametape.verify.submission import Submission

_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t].*", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFAULT_MEMORY_MB = 2048
_OWN_FILES = ("pytest.ini", ".pytest.ini")
_SECTIONS = (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"))


def memory_mb(loaded_task: LoadedTask) -> int:
    """What the code and the tests of a task may take, each in their sandbox."""
    return loaded_task.task.limits.memory_mb or _DEFAULT_MEMORY_MB


def protected_files(loaded_task: LoadedTask) -> SourceTree:
    """The files of the starting tree that are not sources: the agent may not change them."""
    return loaded_task.start.without(
        {path for path in loaded_task.start if is_under(path, loaded_task.task.source_paths)}
    )


def files_around(loaded_task: LoadedTask) -> SourceTree:
    """The files of the starting tree that are neither sources nor tests."""
    task = loaded_task.task
    return _without_paths(loaded_task.start, (*task.source_paths, *task.test_paths))


@functools.lru_cache(maxsize=64)
def _without_paths(tree: SourceTree, paths: tuple[str, ...]) -> SourceTree:
    return tree.without(set(tree.under(paths)))


def visible_tests(loaded_task: LoadedTask) -> SourceTree:
    """The test files of the starting tree, as the agent saw them."""
    return loaded_task.start.under(loaded_task.task.test_paths)


def build_job(
    loaded_task: LoadedTask, sources: SourceTree, suite: SourceTree, processes: Iterable[TestProcess]
) -> ZygoteJob:
    """A job over sources, with protected files as the task gave them and the suite's helper files.

    A process brings its own test file. Another test file is in the tree only if some test imports it, so that code
    under test cannot compare tests with each other.
    """
    task = loaded_task.task
    not_shared = {file_of(test) for test in task.tests.every} - imported_files(suite)
    return ZygoteJob(
        tree=suite.without(not_shared).overlaid_on(sources.overlaid_on(files_around(loaded_task))),
        processes=tuple(processes),
        import_roots=tuple(task.import_roots),
        source_paths=tuple(task.source_paths),
        options=pytest_options(loaded_task.start, loaded_task.interpreter),
        split=task.split,
    )


def pytest_options(start: SourceTree, interpreter: Path | None) -> tuple[str, ...]:
    """Fixed options: the task's ini file and the plugins of its interpreter; pytest discovers nothing by itself."""
    ini = _ini_file(start)
    options = ["-c", f"/workspace/{ini}" if ini else "/dev/null", "--rootdir=/workspace", "-q"]
    options += ["-p", "no:cacheprovider", "-p", "no:junitxml", "-o", "addopts=", "--continue-on-collection-errors"]
    options += ["-W", "ignore::pytest.PytestConfigWarning"]  # about settings of plugins that are not there
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are imported before pytest starts
    options += ["-W", "default::pytest.PytestDeprecationWarning"]  # a plugin's own, where the task makes errors of all
    for plugin in installed_pytest_plugins(interpreter):
        options += ["-p", plugin]
    return tuple(options)


def _ini_file(start: SourceTree) -> str | None:
    """The ini file that pytest itself would take from the starting tree."""
    for name in _OWN_FILES:
        if name in start:
            return name
    if "pyproject.toml" in start:
        try:
            if "pytest" in tomllib.loads(start.text("pyproject.toml")).get("tool", {}):
                return "pyproject.toml"
        except (ValueError, RecursionError):
            return None
    return next((name for name, section in _SECTIONS if name in start and section in start.text(name)), None)


@functools.lru_cache(maxsize=64)
def imported_files(suite: SourceTree) -> frozenset[str]:
    """Files of the suite that other files of it import, matched by the last part of the module name."""
    stems = {path.rsplit("/", 1)[-1].removesuffix(".py"): path for path in suite if path.endswith(".py")}
    imported = set()
    for path in (path for path in suite if path.endswith(".py")):
        imports = " ".join(_IMPORT.findall(suite.text(path)))
        imported |= {stems[word] for word in _WORD.findall(imports) if stems.get(word, path) != path}
    return frozenset(imported)


def file_of(test: str) -> str:
    return test.partition("::")[0]


def function_of(test: str) -> tuple[str, str]:
    """The file and the function of a test id, without its parameters."""
    file, _, rest = test.partition("::")
    return file, rest.partition("[")[0]


def group_by_file(tests: Iterable[str]) -> dict[str, tuple[str, ...]]:
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(file_of(test), []).append(test)
    return {file: tuple(ids) for file, ids in by_file.items()}


def plan_processes(
    name: str,
    suite: SourceTree,
    tests: Iterable[str],
    seconds: Mapping[str, float],
    *,
    messages: bool = False,
    shuffle: random.Random | None = None,
    trace: tuple[str, ...] = (),
    blank: bool = False,
) -> list[TestProcess]:
    """One process per test file; with `shuffle`, files and tests in another order. Where texts are `blank`, ids are
    neutral too."""
    files = list(group_by_file(tests).items())
    if shuffle:
        shuffle.shuffle(files)
    return [
        TestProcess(
            name=f"{name}:{file}",
            path=file,
            tests=ids,
            laid={file: suite.files[file].decode("utf-8", "surrogateescape")},
            shuffle=shuffle.randrange(1 << 30) if shuffle else None,
            messages=messages,
            trace=trace,
            blank=blank,
            key=secrets.token_bytes(16) if blank else b"",
            seconds=seconds[file],
        )
        for file, ids in files
    ]


def changed_python_files(submission: Submission) -> tuple[str, ...]:
    return tuple(path for path in submission.changed_sources if path.endswith(".py"))
