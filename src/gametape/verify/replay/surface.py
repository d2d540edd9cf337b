"""The surface of a task, from its sources: what its tests can reach when they run apart from the code.

A task mined from a package declares no surface. Its sources say which modules there are and which classes they define;
they are parsed, never run. The start tree counts beside the reference, so that the same surface serves an attempt that
keeps what the reference took away.
"""

import ast
import sys
from collections.abc import Iterator

from gametape.core.task import SplitSurface, Task
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.definitions import statements
from gametape.syntax.source import parse_or_none
from gametape.verify.layers.imports import module_name


def derive_surface(loaded_task: LoadedTask) -> SplitSurface:
    """Every module that the task's import roots lead to in its source paths, tests excepted, and every class in them
    that has a name (`module:Outer.Inner`), with what the task declares itself."""
    declared = loaded_task.task.split
    modules = set(declared.modules if declared else ())
    classes = set(declared.classes if declared else ())
    for tree in (loaded_task.start, loaded_task.reference or SourceTree()):
        for module, path in _modules(tree, loaded_task.task):
            modules.add(module)
            syntax_tree = parse_or_none(tree.files[path], bounded=True)
            classes.update(f"{module}:{name}" for name in _class_names(syntax_tree.body if syntax_tree else []))
    return SplitSurface(modules=sorted(modules), classes=sorted(classes))


def _modules(tree: SourceTree, task: Task) -> Iterator[tuple[str, str]]:
    """The modules of a tree, under every name that an import root gives them, with their paths."""
    for path in tree:
        if not is_under(path, task.source_paths) or is_under(path, task.test_paths):
            continue
        names = {module_name(path, [root]) for root in task.import_roots}
        yield from ((name, path) for name in names if name is not None and _can_be_served(name))


def _can_be_served(module: str) -> bool:
    """A module that an import statement can name, and that does not stand in the way of one of the test process."""
    parts = module.split(".")
    return all(part.isidentifier() for part in parts) and parts[0] not in {*sys.stdlib_module_names, "conftest"}


def _class_names(body: list[ast.stmt], outer: str = "") -> Iterator[str]:
    for node in statements(body):
        if isinstance(node, ast.ClassDef):
            yield outer + node.name
            yield from _class_names(node.body, f"{outer}{node.name}.")
