"""Check that the parts of a task agree: what task.toml names exists, and no held-out test is in the workspace."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from gametape.core.task import SplitSurface, Task
from gametape.core.validation import Problem, format_location
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.held_out_leaks import find_held_out_leaks
from gametape.tasks.layout import SUITE_DIRECTORY, WORKSPACE_DIRECTORY
from gametape.tasks.task_toml import GAMETAPE_TABLE_PATH
from gametape.verify.reward import GROUPS, WEIGHTS

Inconsistency = tuple[str, Problem]
"""A file of the task directory, and the problem in it."""


def find_inconsistencies(loaded_task: LoadedTask) -> Iterator[Inconsistency]:
    """Every contradiction in a task, with the file that has to change."""
    task = loaded_task.task
    solved = loaded_task.reference or loaded_task.start
    for index, source_path in enumerate(task.source_paths):
        if not any(is_under(path, [source_path]) for path in (*loaded_task.start, *solved)):
            yield _in_table(("source_paths", index), f"a path in the workspace, but {source_path} is not there")
    for path in loaded_task.suite:
        if not is_under(path, task.test_paths):
            yield f"{SUITE_DIRECTORY}/{path}", Problem("", "a file below test_paths: no other is laid over the sources")
    for layer in task.weights:
        if layer not in WEIGHTS and layer not in GROUPS:
            yield _in_table(("weights", layer), f"a layer of the reward ({', '.join([*WEIGHTS, *GROUPS])})")
    yield from _test_inconsistencies(loaded_task)
    if task.split is not None:
        yield from _surface_inconsistencies(task.split, task, solved)


def _test_inconsistencies(loaded_task: LoadedTask) -> Iterator[Inconsistency]:
    tests = loaded_task.task.tests
    missing = False
    for role in ("fail_to_pass", "pass_to_pass", "held_out"):
        for index, test in enumerate(getattr(tests, role)):
            file, _, function = test.partition("::")
            location = ("tests", role, index)
            if not function:
                yield _in_table(location, f"a test id like tests/test_a.py::test_b, not {test}")
            elif file not in loaded_task.suite:
                yield _in_table(location, f"a test of the suite, but {SUITE_DIRECTORY}/{file} is not there")
            elif role != "held_out" and file not in loaded_task.start:
                yield _in_table(location, f"a test that the agent sees, but {WORKSPACE_DIRECTORY}/{file} is not there")
            else:
                continue
            missing = True
    if missing:
        return
    hidden = {test.partition("::")[0] for test in tests.held_out}
    for file in dict.fromkeys(test.partition("::")[0] for test in tests.visible):
        if file not in hidden and loaded_task.start.files[file] != loaded_task.suite.files[file]:
            yield (
                f"{WORKSPACE_DIRECTORY}/{file}",
                Problem("", f"the same as {SUITE_DIRECTORY}/{file}, for the agent is to see what is run"),
            )
    for file, what in find_held_out_leaks(tests, loaded_task.start, loaded_task.suite):
        yield f"{WORKSPACE_DIRECTORY}/{file}", Problem("", f"no held-out test, but {what} is in it")


def _surface_inconsistencies(split: SplitSurface, task: Task, solved: SourceTree) -> Iterator[Inconsistency]:
    for index, module in enumerate(split.modules):
        if not _is_module(module, task, solved):
            yield _in_table(("split", "modules", index), f"a module of the sources, but there is no {module}")
    for index, name in enumerate(split.classes):
        module, _, inner = name.partition(":")
        if not inner or not _is_module(module, task, solved):
            yield _in_table(("split", "classes", index), f"module:Class of the sources, not {name}")


def _in_table(location: tuple[str | int, ...], expected: str) -> Inconsistency:
    return "task.toml", Problem(format_location((*GAMETAPE_TABLE_PATH, *location)), expected)


def _is_module(module: str, task: Task, tree: SourceTree) -> bool:
    """Whether a dotted name is a module or a package below one of the import roots."""
    for root in map(PurePosixPath, task.import_roots):
        package = (root / module.replace(".", "/")).as_posix()
        if f"{package}.py" in tree or tree.under([package]).files:
            return True
    return False
